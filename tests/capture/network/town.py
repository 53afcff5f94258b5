"""The town that a run may reach a part of: servers of HTTP and HTTPS, whose pages lie in a directory for each name. Says `ready`."""

import http.server
import os
import socketserver
import ssl
import sys
import threading

TOP, CERTIFICATE, LOG = sys.argv[1:]


class Page(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def translate_path(self, path):
        name = (self.headers.get("Host") or "none").split(":")[0]
        return os.path.join(TOP, name, path.split("?")[0].lstrip("/"))

    def note(self, body=b""):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        with open(LOG, "a") as log:
            log.write(f"{self.command} {self.headers.get('Host')} {self.path} {body.decode()}\n")
        return body

    def answer(self, status, text, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        body = self.note()
        if self.path == "/moved":
            self.answer(302, b"", ("Location", "http://other.test/"))
        elif self.headers.get("Upgrade"):
            self.answer(101, b"", ("Upgrade", self.headers["Upgrade"]), ("Connection", "Upgrade"))
        elif self.path == "/echo":
            self.answer(200, b"echo " + body)
            # One that does not heed `Connection: close` would take a second request.
            self.close_connection = False
            self.connection.settimeout(0.5)
        else:
            super().do_GET()

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


plain = Server(("0.0.0.0", 80), Page)
closed = Server(("10.99.0.1", 443), Page)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE)
closed.socket = context.wrap_socket(closed.socket, server_side=True)
for server in (plain, closed):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
