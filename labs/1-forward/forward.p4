// Lab 1: a router for IPv4. Replace the TODOs; keep the table, its action and the counter.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;

// ---- headers -------------------------------------------------------------------------------------

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t { }

// ---- parser --------------------------------------------------------------------------------------

parser ForwardParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        // TODO step 1: IPv4 goes to parse_ipv4.
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

// ---- ingress -------------------------------------------------------------------------------------

control ForwardIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    counter(512, CounterType.packets_and_bytes) sent;   // packets that leave, by their port

    action drop() { mark_to_drop(standard); }
    action forward(bit<48> mac, bit<9> port) {
        // TODO steps 2, 3, 4 and 7: what a router does with a packet that it forwards.
    }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }

    apply {
        // TODO steps 1, 2 and 5: which packets are looked up in ipv4_lpm? All others are dropped.
        drop();
    }
}

// ---- egress and checksum -------------------------------------------------------------------------

control ForwardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control UpdateChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // TODO step 6: update_checksum(condition, { fields }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        // TODO step 1: what else does the packet leave with?
    }
}

V1Switch(ForwardParser(), NoVerify(), ForwardIngress(), ForwardEgress(), UpdateChecksum(), ForwardDeparser()) main;
