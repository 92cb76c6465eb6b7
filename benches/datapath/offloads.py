"""Switches TSO, GSO and GRO of a device, as `ethtool -K` does: offloads.py DEVICE on|off."""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO = 0x1F, 0x24, 0x2C


def switch(device: str, is_on: bool) -> None:
    """The three features, in this order, because TSO needs GSO."""
    commands = (ETHTOOL_SGSO, ETHTOOL_STSO, ETHTOOL_SGRO)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in commands if is_on else reversed(commands):
            value = array.array("B", struct.pack("II", command, is_on))
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
            fcntl.ioctl(s, SIOCETHTOOL, request.ljust(40, b"\0"))


if __name__ == "__main__":
    switch(sys.argv[1], sys.argv[2] == "on")
