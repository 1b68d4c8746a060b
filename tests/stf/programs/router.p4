// What a first assignment asks for: an IPv4 router, with an access list before it.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> ethertype; }

header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> dscp; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { }

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(512) routed;
    action drop() { mark_to_drop(standard); }
    action permit() { }
    action forward(bit<48> mac, bit<9> port) {
        standard.egress_spec = port;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        bit<32> count;
        routed.read(count, (bit<32>)port);
        routed.write((bit<32>)port, count + 1);
    }
    table acl {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.protocol: optional; hdr.ipv4.length: range; }
        actions = { permit; drop; }
        default_action = permit();
    }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) { drop(); }
        else if (ipv4_lpm.apply().hit) { acl.apply(); }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); }
}

V1Switch(RouterParser(), Verify(), RouterIngress(), RouterEgress(), Compute(), RouterDeparser()) main;
