// An optical circuit switch for v1model: what comes in by a port leaves by the port that its circuit leads to.
//
// Light is not looked at: no header is parsed, every byte passes. A port without a circuit is dark.

#include <core.p4>
#include <v1model.p4>

#define PORTS 512

struct headers_t { }
struct metadata_t { }

parser CircuitParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard) {
    state start { transition accept; }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply { } }

control CircuitIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Every packet is counted by the port that it came in by, in one of the two.
    counter(PORTS, CounterType.packets_and_bytes) passed;
    counter(PORTS, CounterType.packets_and_bytes) lost;

    action connect(bit<9> port) {
        passed.count((bit<32>)standard.ingress_port);
        standard.egress_spec = port;
    }
    action darken() {
        lost.count((bit<32>)standard.ingress_port);
        mark_to_drop(standard);
    }
    table cross_connect {
        key = { standard.ingress_port: exact; }
        actions = { connect; darken; }
        default_action = darken();
        size = PORTS;
    }

    apply { cross_connect.apply(); }
}

control CircuitEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control CircuitDeparser(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(CircuitParser(), NoVerify(), CircuitIngress(), CircuitEgress(), NoUpdate(), CircuitDeparser()) main;
