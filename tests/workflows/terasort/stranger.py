"""What Hadoop's sockets answer to who comes from elsewhere: ``stranger.py HOST PORT``.

Asks as the shuffle's readers do, without the token of the job, and as who speaks one of Hadoop's
protocols, and prints both answers. The RPC header and its packets: Hadoop 3.4.2, RpcHeader.proto
and IpcConnectionContext.proto. A connection is judged before its first call, by whether the socket
has the protocol and then by where it comes from.
"""

import socket
import struct
import sys

PATIENCE_S = 20.0
SHUFFLE = (
    b"GET /mapOutput?job=job_1_0001&reduce=0&map=attempt_1_0001_m_000000_0 HTTP/1.1\r\n"
    b"Host: hadoop\r\nname: mapreduce\r\nversion: 1.0.0\r\nConnection: close\r\n\r\n"
)
PROTOCOLS = (
    "mapred.TaskUmbilicalProtocol",
    "mapreduce.v2.api.MRClientProtocolPB",
    "mapreduce.v2.api.HSClientProtocolPB",
    "mapreduce.v2.api.HSAdminRefreshProtocolPB",
    "yarn.api.ApplicationClientProtocolPB",
    "yarn.api.ApplicationMasterProtocolPB",
    "yarn.api.ContainerManagementProtocolPB",
    "yarn.server.api.ResourceTrackerPB",
    "yarn.server.api.ResourceManagerAdministrationProtocolPB",
    "yarn.server.nodemanager.api.LocalizationProtocolPB",
)


def rpc(protocol: str) -> bytes:
    """A connection without authentication, version 9, and its context; no call."""
    user = _field(1, b"lab")
    context = _field(2, user) + _field(3, f"org.apache.hadoop.{protocol}".encode())
    header = bytes([1 << 3, 2, 2 << 3, 0, 3 << 3, 5]) + _field(4, bytes(16)) + bytes([5 << 3, 1])
    packet = bytes([len(header)]) + header + bytes([len(context)]) + context
    return b"hrpc" + bytes([9, 0, 0]) + struct.pack(">I", len(packet)) + packet


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def asked(host: str, port: int, question: bytes) -> str:
    """All that is answered."""
    answer = b""
    with socket.create_connection((host, port), PATIENCE_S) as connection:
        connection.sendall(question)
        try:
            while more := connection.recv(4096):
                answer += more
        except (ConnectionResetError, TimeoutError) as error:
            answer += f" ({type(error).__name__})".encode()
    return repr(answer)


if __name__ == "__main__":
    place = sys.argv[1], int(sys.argv[2])
    print(asked(*place, SHUFFLE))
    print(*[asked(*place, rpc(protocol)) for protocol in PROTOCOLS])
