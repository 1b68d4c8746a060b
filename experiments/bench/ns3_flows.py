"""Runs flows of UDP packets over a network in ns-3, and prints their packet-hops and the processor's seconds as JSON.

A program of its own, for the Python that has ns-3 (`pip install ns3`): it imports nothing of inakit. Standard input has
`links`, each two nodes, a rate in bit/s, a delay in seconds and the packets that may wait for it, and `flows`, each a
path of nodes, a number of packets, their bytes on the wire and the time between two of them in seconds. The packets of
a flow are UDP over IPv4 over a point-to-point link. Routers have one route for each destination host, and no queueing
discipline before a link's own queue.
"""

import json
import sys
import time
from itertools import pairwise

HEADER_BYTES = 2 + 20 + 8  # PPP, IPv4, UDP
PORT, AFTERWARDS_S = 9, 0.1


def main() -> None:
    """Build the network, send all flows, and print `hops`, `lost` and `run_s`."""
    try:
        from ns import ns  # noqa: PLC0415, an extra
    except ImportError as error:
        sys.exit(f"{sys.executable} has no ns-3: {error}")
    given = json.load(sys.stdin)
    names = sorted({name for link in given["links"] for name in link[:2]})
    nodes = {name: ns.CreateObject[ns.Node]() for name in names}
    container = ns.NodeContainer()
    for node in nodes.values():
        container.Add(node)
    stack, routing = ns.InternetStackHelper(), ns.Ipv4StaticRoutingHelper()
    stack.SetIpv6StackInstall(False)
    stack.SetRoutingHelper(routing)
    stack.Install(container)
    interface, address = {}, {}
    for number, (one, other, rate_bps, delay_s, queue) in enumerate(given["links"]):
        link = ns.PointToPointHelper()
        link.SetDeviceAttribute("DataRate", ns.DataRateValue(ns.DataRate(int(rate_bps))))
        link.SetChannelAttribute("Delay", ns.TimeValue(ns.Seconds(delay_s)))
        link.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue(f"{queue}p"))
        devices = link.Install(nodes[one], nodes[other])
        for side, (near, far) in enumerate(((one, other), (other, one))):
            ip = nodes[near].GetObject[ns.Ipv4]()
            interface[near, far] = at = ip.AddInterface(devices.Get(side))
            address[near] = own = ns.Ipv4Address((10 << 24) + 4 * number + side + 1)
            ip.AddAddress(at, ns.Ipv4InterfaceAddress(own, ns.Ipv4Mask("255.255.255.252")))
            ip.SetUp(at)
    sinks, ends_s = [], 0.0
    for number, (path, packets, frame_bytes, interval_s) in enumerate(given["flows"]):
        source, target, port = nodes[path[0]], nodes[path[-1]], PORT + number
        for near, far in pairwise(path):
            routes = routing.GetStaticRouting(nodes[near].GetObject[ns.Ipv4]())
            routes.AddHostRouteTo(address[path[-1]], interface[near, far])
        sink = ns.PacketSinkHelper(
            "ns3::UdpSocketFactory", ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
        )
        sinks.append(sink.Install(target).Get(0).GetObject[ns.PacketSink]())
        client = ns.UdpClientHelper(ns.InetSocketAddress(address[path[-1]], port).ConvertTo())
        client.SetAttribute("MaxPackets", ns.UintegerValue(packets))
        client.SetAttribute("PacketSize", ns.UintegerValue(frame_bytes - HEADER_BYTES))
        client.SetAttribute("Interval", ns.TimeValue(ns.Seconds(interval_s)))
        client.Install(source).Start(ns.Seconds(0.0))
        ends_s = max(ends_s, packets * interval_s)
    ns.Simulator.Stop(ns.Seconds(ends_s + AFTERWARDS_S))
    started = time.process_time()
    ns.Simulator.Run()
    run_s = time.process_time() - started
    hops = lost = 0
    for sink, (path, packets, frame_bytes, _) in zip(sinks, given["flows"], strict=True):
        received = sink.GetTotalRx() // (frame_bytes - HEADER_BYTES)
        hops, lost = hops + received * (len(path) - 1), lost + packets - received
    print(json.dumps({"hops": hops, "lost": lost, "run_s": run_s}))


if __name__ == "__main__":
    main()
