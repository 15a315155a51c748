"""A mail server for src/demo/smtp.rs: aiosmtpd, told by lines of JSON on standard input what to do with mails.

Every mail is written to standard output, parsed by Python's own library, before it is answered: the record is what the
server has, the answer only what the sender knows. The end of standard input ends it.
"""

import asyncio
import base64
import email
import email.policy
import json
import socket
import ssl
import struct
import sys

from aiosmtpd.smtp import SMTP, AuthResult

options = json.loads(sys.argv[1])
behaviour = {"do": "accept"}
servers = set()


def tell(**event):
    print(json.dumps(event), flush=True)


def parsed(content):
    mail = email.message_from_bytes(content, policy=email.policy.default)
    parts = [part for part in mail.walk() if not part.is_multipart()]
    return {
        "headers": [[name, str(value)] for name, value in mail.items()],
        "kind": mail.get_content_type(),
        "parts": [[part.get_content_type(), part.get_content()] for part in parts],
    }


def reset(transport):
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        refused = behaviour.get("rcpt")
        if refused:
            return refused
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        now = dict(behaviour)
        if now["do"] != "refuse":
            tell(
                mail={
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "user": session.auth_data,
                    "encrypted": server.transport.get_extra_info("sslcontext") is not None,
                    "hello": session.host_name,
                    "raw": base64.b64encode(envelope.original_content).decode(),
                    **parsed(envelope.original_content),
                }
            )
        if now["do"] == "hang":
            await asyncio.Event().wait()
        if now["do"] == "reset":
            reset(server.transport)
            await asyncio.Event().wait()
        if now["do"] == "refuse":
            return now["reply"]
        await asyncio.sleep(now.get("pause", 0))
        return "250 2.0.0 OK queued as 42"


class Server(SMTP):
    def connection_made(self, transport):
        super().connection_made(transport)
        # STARTTLS makes the connection a second time.
        if self not in servers:
            servers.add(self)
            tell(connected=True)

    def connection_lost(self, error):
        servers.discard(self)
        super().connection_lost(error)


def authenticate(server, session, envelope, mechanism, given):
    user, password = options["user"]
    good = given.login == user.encode() and given.password == password.encode()
    return AuthResult(success=good, handled=False, auth_data=user)


def context():
    if not options["certificate"]:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(options["certificate"], options["key"])
    return made


def server():
    starttls = options["security"] == "starttls"
    return Server(
        Handler(),
        hostname="mail.example.com",
        data_size_limit=options["size_limit"],
        tls_context=context() if starttls else None,
        require_starttls=starttls,
        authenticator=authenticate if options["user"] else None,
        auth_required=bool(options["user"]),
        # With TLS from the first byte the library does not see it.
        auth_require_tls=starttls,
        auth_exclude_mechanism=options["without"],
    )


async def main():
    global behaviour
    loop = asyncio.get_running_loop()
    encryption = context() if options["security"] == "tls" else None
    listener = await loop.create_server(server, "127.0.0.1", 0, ssl=encryption, backlog=512)
    tell(port=listener.sockets[0].getsockname()[1])
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = json.loads(line)
        if order["do"] == "close":
            for each in list(servers):
                each.transport.abort()
        else:
            behaviour = order
        tell(told=True)


asyncio.run(main())
