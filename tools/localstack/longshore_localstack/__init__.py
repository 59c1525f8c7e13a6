"""What LocalStack's open-source runtime lacks to run Longshore without Docker and without
downloads: functions as processes of this machine, and DynamoDB from moto."""
