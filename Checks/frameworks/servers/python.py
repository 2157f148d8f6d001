"""Frameworks of PyPI that each route `/v1/pay` and `/v1/pay/{id}`, behind the servers that they are deployed on.

    servers/python.py SERVER DESCRIPTOR

DESCRIPTOR is a listening socket. The header `X-Framework` of a request picks the framework.
"""

import asyncio
import re
import socket
import sys


def flask():
    import flask

    app = flask.Flask("frameworks")
    app.route("/v1/pay")(lambda: "pay")
    app.route("/v1/pay/<id>", endpoint="below")(lambda id: "pay")
    return app


def pyramid():
    from pyramid.config import Configurator
    from pyramid.response import Response

    with Configurator() as configurator:
        for name, pattern in (("exact", "/v1/pay"), ("below", "/v1/pay/{id}")):
            configurator.add_route(name, pattern)
            configurator.add_view(lambda request: Response("pay"), route_name=name)
    return configurator.make_wsgi_app()


def django_settings():
    import django
    import django.conf
    import django.http
    import django.urls

    def pay(request, id=None):
        return django.http.HttpResponse("pay")

    # Django's two kinds of patterns. Older projects use regular expressions, which end with `$`.
    routes = type("routes", (), {"urlpatterns": [
        django.urls.path("v1/pay", pay), django.urls.path("v1/pay/<id>", pay), django.urls.re_path(r"^v1/pay$", pay)]})
    sys.modules["routes"] = routes
    if not django.conf.settings.configured:
        django.conf.settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF="routes", SECRET_KEY="-", MIDDLEWARE=[
            "django.middleware.common.CommonMiddleware"])
        django.setup()


def django_wsgi():
    django_settings()
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


def django_asgi():
    django_settings()
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


def starlette():
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def pay(request):
        return PlainTextResponse("pay")

    return Starlette(routes=[Route("/v1/pay", pay), Route("/v1/pay/{id}", pay)])


def urlsplit_wsgi(environ, start_response):
    """A service without a framework, which parses the target with the standard library."""
    from urllib.parse import unquote, urlsplit

    target = environ.get("RAW_URI") or environ.get("REQUEST_URI") or environ["PATH_INFO"]
    path = unquote(urlsplit(target).path)
    found = re.match(r"/v1/pay(/[^/]+)?$", path)
    start_response("200 OK" if found else "404 Not Found", [("Content-Type", "text/plain")])
    return [b"pay" if found else b""]


def wsgi():
    apps = {"flask": flask(), "django": django_wsgi(), "pyramid": pyramid(), "urlsplit": urlsplit_wsgi}
    return lambda environ, start_response: apps[environ["HTTP_X_FRAMEWORK"]](environ, start_response)


def asgi():
    apps = {"starlette": starlette(), "django": django_asgi()}

    async def application(scope, receive, send):
        if scope["type"] == "http":
            await apps[dict(scope["headers"])[b"x-framework"].decode()](scope, receive, send)

    return application


def main(server, descriptor):
    listener = socket.socket(fileno=descriptor)
    if server == "wsgiref":
        from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

        class Handler(WSGIRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *arguments):
                pass

        http = WSGIServer(listener.getsockname(), Handler, bind_and_activate=False)
        http.socket = listener
        http.server_name, http.server_port = listener.getsockname()
        http.setup_environ()
        http.set_app(wsgi())
        http.serve_forever()
    elif server == "werkzeug":
        import logging

        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        make_server("127.0.0.1", 0, wsgi(), threaded=True, fd=descriptor).serve_forever()
    elif server == "waitress":
        import waitress

        waitress.serve(wsgi(), sockets=[listener], _quiet=True)
    elif server == "gunicorn":
        from gunicorn.app.base import BaseApplication

        class Application(BaseApplication):
            def load_config(self):
                self.cfg.set("bind", f"fd://{descriptor}")
                self.cfg.set("worker_class", "gthread")
                self.cfg.set("loglevel", "error")

            def load(self):
                return wsgi()

        Application().run()
    elif server in ("h11", "httptools"):
        import uvicorn

        uvicorn.Server(uvicorn.Config(asgi(), http=server, log_level="error", lifespan="off")).run(sockets=[listener])
    elif server == "aiohttp":
        from aiohttp import web

        async def pay(request):
            return web.Response(text="pay")

        app = web.Application()
        app.add_routes([web.get("/v1/pay", pay), web.get("/v1/pay/{id}", pay)])
        web.run_app(app, sock=listener, print=None, access_log=None)


main(sys.argv[1], int(sys.argv[2]))
