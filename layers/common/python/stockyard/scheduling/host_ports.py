"""Ports of a node that pods take, and which of them cannot be beside each other. Of all ports of a problem the packer
makes one integer a pod: whether a pod can be on a node is then one AND."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from stockyard.domain.values.frozen import dataclass

BITS_A_STEP, PORTS_A_STEP = 16_384, 8
"""How many bits are compared, and how many ports read, in one step of work."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod takes. An empty address stands for all of the node's."""

    port: int
    protocol: str = "TCP"
    address: str = ""

    def __str__(self) -> str:
        """The port as people read it: ``8080/TCP``, with its address where it has one."""
        return f"{self.port}/{self.protocol}" + (f" on {self.address}" if self.address else "")

    def conflicts(self, port_in_use: HostPort) -> bool:
        """Whether both cannot be on one node."""
        same_address = not self.address or not port_in_use.address or self.address == port_in_use.address
        return same_address and self.port == port_in_use.port and self.protocol == port_in_use.protocol


class PortsInUse:
    """Ports in use of one node, to compare many pods with."""

    def __init__(self, ports: Sequence[HostPort]) -> None:
        self._by_number: defaultdict[int, list[HostPort]] = defaultdict(list)
        for port in ports:
            self._by_number[port.port].append(port)

    def conflict(self, ports: Sequence[HostPort]) -> bool:
        """Whether some of the ports cannot be beside these."""
        by_number = self._by_number
        return any(port.conflicts(other) for port in ports for other in by_number.get(port.port, ()))


def conflict(ports: Sequence[HostPort], ports_in_use: Sequence[HostPort]) -> bool:
    """Whether some of the ports cannot be beside those in use."""
    return bool(ports and ports_in_use) and PortsInUse(ports_in_use).conflict(ports)


@dataclass(frozen=True, slots=True)
class PortBits:
    """The ports of one pod or node as bits: those that it takes, and those that cannot be beside it."""

    own: int = 0
    refused: int = 0


NO_PORTS = PortBits()


class PortTable:
    """The bits of ports that several pods or nodes take: ``pods`` and ``nodes`` are the ports of each of them.

    Ports of equal holders share a bit: what conflicts by one of them conflicts by all. So there are no more bits than
    needed to tell the holders apart, however many ports each has. Ports that no pod asks for have none.
    """

    def __init__(self, pods: Iterable[Sequence[HostPort]], nodes: Iterable[Sequence[HostPort]] = ()) -> None:
        holding: defaultdict[tuple[int, str], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        distinct = dict.fromkeys(tuple(ports) for ports in pods if ports)
        requested = {(port.port, port.protocol) for ports in distinct for port in ports}
        distinct |= dict.fromkeys(tuple(ports) for ports in nodes if ports and requested)
        for number, ports in enumerate(distinct):
            for port in ports:
                if (port.port, port.protocol) in requested:
                    holding[port.port, port.protocol][port.address].append(number)
        self.steps = sum(map(len, distinct)) // PORTS_A_STEP
        """The work of reading them."""
        self._bits: dict[HostPort, PortBits] = {}
        count, alike = 0, dict[object, Mapping[str, PortBits]]()
        for (number, protocol), addresses in holding.items():
            memo_key = tuple(sorted((address, tuple(numbers)) for address, numbers in addresses.items()))
            if memo_key not in alike:
                listed = [HostPort(number, protocol, address) for address in addresses]
                bit = {port: 1 << count + index for index, port in enumerate(listed)}
                alike[memo_key] = {
                    port.address: PortBits(bit[port], sum(bit[other] for other in listed if port.conflicts(other)))
                    for port in listed
                }
                count += len(listed)
            for address, bits in alike[memo_key].items():
                self._bits[HostPort(number, protocol, address)] = bits
        self.steps_a_look = count // BITS_A_STEP
        """The work of one comparison, besides the step that it is part of."""
        self._of_ports = {ports: self._joined(ports) for ports in distinct}

    def of(self, ports: Sequence[HostPort]) -> PortBits:
        """The bits of the ports of one of the pods or nodes; none for others."""
        return self._of_ports.get(tuple(ports), NO_PORTS) if ports else NO_PORTS

    def conflict(self, ports: Sequence[HostPort], ports_in_use: Sequence[HostPort]) -> bool:
        """As ``conflict``, by bits where both are known."""
        if not ports or not ports_in_use:
            return False
        bits, bits_in_use = self._of_ports.get(tuple(ports)), self._of_ports.get(tuple(ports_in_use))
        if bits is None or bits_in_use is None:
            return conflict(ports, ports_in_use)
        return bool(bits.refused & bits_in_use.own)

    def _joined(self, ports: Sequence[HostPort]) -> PortBits:
        own = refused = 0
        for port in ports:
            bits = self._bits.get(port, NO_PORTS)
            own |= bits.own
            refused |= bits.refused
        return PortBits(own, refused)
