"""Function URLs by path, for clients that do not resolve LocalStack's host names:
http://HOST:PORT/_aws/lambda-url/<id>/ beside http://<id>.lambda-url.<region>.HOST:PORT/."""

from localstack.runtime import hooks


@hooks.on_infra_start()
def by_path():
    from localstack.services.edge import ROUTER

    ROUTER.add("/_aws/lambda-url/<api_id>/", _invoke, defaults={"path": ""})
    ROUTER.add("/_aws/lambda-url/<api_id>/<path:path>", _invoke)


def _invoke(request, api_id, path):
    from localstack.services.plugins import SERVICE_PLUGINS

    functions = SERVICE_PLUGINS.require("lambda")._provider
    return functions.router.handle_lambda_url_invocation(request, api_id, region="us-east-1")
