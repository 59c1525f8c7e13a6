# An Amazon machine image with Docker and the Longshore agent:
#
#   make package
#   packer init packaging/image && packer build -var region=eu-west-1 packaging/image
#
# The queues' addresses are outputs of the stack; without them an instance's user data must
# write them to /etc/longshore/agent.env.

packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.3.0, < 2.0.0"
    }
  }
}

variable "region" {
  type = string
}

# Where `make package` has put the packages and their SHA256SUMS.
variable "packages" {
  type    = string
  default = "dist/package"
}

variable "architecture" {
  type    = string
  default = "x86_64"
  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "The architecture must be x86_64 or arm64."
  }
}

variable "cluster" {
  type    = string
  default = "default"
}

variable "reports_queue_url" {
  type    = string
  default = ""
}

variable "heartbeats_queue_url" {
  type    = string
  default = ""
}

# Where the stack is not called Longshore.
variable "command_queue_name_start" {
  type    = string
  default = ""
}

locals {
  instance_type = var.architecture == "arm64" ? "t4g.small" : "t3.small"
  uname         = var.architecture == "arm64" ? "aarch64" : "x86_64"
}

source "amazon-ebs" "agent" {
  region        = var.region
  instance_type = local.instance_type
  ssh_username  = "ec2-user"
  # The key that Packer came in with is not to be in the image.
  ssh_clear_authorized_keys = true
  ami_name      = "longshore-agent-${var.architecture}-{{timestamp}}"

  source_ami_filter {
    owners      = ["amazon"]
    most_recent = true
    filters = {
      name                = "al2023-ami-2023.*-kernel-*-${var.architecture}"
      root-device-type    = "ebs"
      virtualization-type = "hvm"
    }
  }

  # Containers on a bridge are one hop further away than the host: they cannot reach it.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  imds_support = "v2.0"
}

build {
  sources = ["source.amazon-ebs.agent"]

  provisioner "shell" {
    inline = ["mkdir -p /tmp/longshore"]
  }

  provisioner "file" {
    sources = concat(
      ["${path.root}/install.sh", "${path.root}/check.sh", "${var.packages}/SHA256SUMS"],
      [for name in fileset(var.packages, "*.${local.uname}.rpm") : "${var.packages}/${name}"],
    )
    destination = "/tmp/longshore/"
  }

  # check.sh last: it says what of the machine's identity is left.
  provisioner "shell" {
    inline = [
      "sudo env LONGSHORE_CLUSTER='${var.cluster}' LONGSHORE_REPORTS_QUEUE_URL='${var.reports_queue_url}' LONGSHORE_HEARTBEATS_QUEUE_URL='${var.heartbeats_queue_url}' LONGSHORE_COMMAND_QUEUE_NAME_START='${var.command_queue_name_start}' sh /tmp/longshore/install.sh --docker --image",
      "sudo sh /tmp/longshore/check.sh",
      "sudo rm -rf /tmp/longshore",
    ]
  }
}
