// Lab 1, with a checksum that is changed by hand, by RFC 1624.

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
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
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
        standard.egress_spec = port;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        // HC' = ~(~HC + ~m + m'): the word of ttl and protocol falls by 0x0100.
        bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(~(hdr.ipv4.ttl ++ hdr.ipv4.protocol))
            + (bit<32>)((hdr.ipv4.ttl - 1) ++ hdr.ipv4.protocol);
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = (sum & 0xFFFF) + (sum >> 16);
        hdr.ipv4.checksum = ~sum[15:0];
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        sent.count((bit<32>)port);
    }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ihl != 5) {
            drop();
        } else if (hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            ipv4_lpm.apply();
        }
    }
}

// ---- egress and checksum -------------------------------------------------------------------------

control ForwardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control UpdateChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(ForwardParser(), NoVerify(), ForwardIngress(), ForwardEgress(), UpdateChecksum(), ForwardDeparser()) main;
