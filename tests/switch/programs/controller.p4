// Packets to and from a controller over the CPU port, with headers whose fields are packed bit by bit.
//
// A packet of the controller leaves by the port that its header names; one with `learn` set leaves a digest. Any other
// packet goes to the controller, with the port and the length that it came with.

#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 255;

@controller_header("packet_in")
header to_controller_t {
    bit<9>  ingress_port;
    bit<4>  reason;
    bit<16> length;
    bit<3>  _pad;
}

@controller_header("packet_out")
header from_controller_t {
    bit<1>  learn;
    bit<9>  egress_port;
    bit<12> tag;
    bit<2>  _pad;
}

header ethernet_t { bit<48> target; bit<48> sender; bit<16> type; }

struct headers_t {
    to_controller_t   to_controller;
    from_controller_t from_controller;
    ethernet_t        ethernet;
}

struct metadata_t {}

struct learned_t { bit<48> sender; bit<9> port; }

parser TheParser(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(headers.from_controller);
        transition ethernet;
    }
    state ethernet {
        packet.extract(headers.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t meta) { apply {} }

control TheIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (headers.from_controller.isValid()) {
            standard.egress_spec = headers.from_controller.egress_port;
            if (headers.from_controller.learn == 1) {
                digest<learned_t>(1, { headers.ethernet.sender, standard.ingress_port });
            }
            headers.ethernet.type = (bit<16>)headers.from_controller.tag;
            headers.from_controller.setInvalid();
        } else {
            standard.egress_spec = CPU_PORT;
        }
    }
}

control TheEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == CPU_PORT) {
            headers.to_controller.setValid();
            headers.to_controller.ingress_port = standard.ingress_port;
            headers.to_controller.reason = 5;
            headers.to_controller.length = (bit<16>)standard.packet_length;
        }
    }
}

control Update(inout headers_t headers, inout metadata_t meta) { apply {} }

control TheDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.to_controller);
        packet.emit(headers.ethernet);
    }
}

V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Update(), TheDeparser()) main;
