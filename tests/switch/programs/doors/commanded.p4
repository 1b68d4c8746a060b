#include "../types.p4"
// Something for each kind of command that a control plane has.
header test_t { bit<32> address; bit<16> port; bit<8> kind; bit<8> colour; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
struct learned_t { bit<48> source; bit<9> port; }
parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) tested;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            tested: test;
            default: accept;
        }
    }
    state test { packet.extract(hdr.test); transition accept; }
}
control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(8) words;
    register<bit<64>>(4) long_words;
    counter(4, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.packets) rate;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.bytes) colours;
    action_profile(8) members;
    action_selector(HashAlgorithm.crc16, 8, 8) paths;
    action to_port(bit<9> port) { standard.egress_spec = port; }
    action to_group(bit<16> group) { standard.mcast_grp = group; }
    action clone_to(bit<32> session) { clone(CloneType.I2E, session); }
    action learn() { digest<learned_t>(1, { hdr.ethernet.src, standard.ingress_port }); }
    action mark(bit<48> destination, bit<9> port) {
        hdr.ethernet.dst = destination;
        standard.egress_spec = port;
        hits.count();
    }
    action coloured() { colours.read(hdr.test.colour); }
    action counted(bit<32> index) {
        seen.count(index);
        words.write(index, (bit<32>)standard.packet_length);
        long_words.write(index, (bit<64>)hdr.test.address << 32);
        rate.execute_meter<bit<8>>(index, hdr.test.colour);
        hash(hdr.test.port, HashAlgorithm.crc16_custom, 16w0, { hdr.test.address }, 32w65536);
        hash(hdr.test.address, HashAlgorithm.crc32_custom, 32w0, { hdr.test.kind }, 64w0x100000000);
    }
    table exact_table {
        key = { standard.ingress_port: exact; hdr.ethernet.dst: exact; }
        actions = { to_port; to_group; clone_to; learn; NoAction; }
        default_action = NoAction;
        support_timeout = true;
        size = 4;
    }
    table prefixes {
        key = { hdr.test.address: lpm; }
        actions = { mark; NoAction; }
        counters = hits;
        default_action = NoAction;
    }
    table masked {
        key = { hdr.test.address: ternary; hdr.test.isValid(): exact; }
        actions = { coloured; NoAction; }
        meters = colours;
        default_action = NoAction;
    }
    table ranges {
        key = { hdr.test.port: range; hdr.test.kind: optional; }
        actions = { counted; to_port; }
    }
    table fixed {
        key = { hdr.test.kind: exact; }
        actions = { to_port; NoAction; }
        const default_action = NoAction;
        const entries = { 1: to_port(1); 2: to_port(2); }
    }
    table by_member {
        key = { hdr.test.kind: exact; }
        actions = { to_port; NoAction; }
        implementation = members;
    }
    table by_group {
        key = { hdr.test.kind: ternary; hdr.test.address: selector; hdr.test.port: selector; }
        actions = { to_port; NoAction; }
        implementation = paths;
    }
    table keyless {
        actions = { to_port; NoAction; }
        default_action = to_port(3);
    }
    apply {
        keyless.apply();
        exact_table.apply();
        if (hdr.test.isValid()) {
            prefixes.apply();
            masked.apply();
            ranges.apply();
            fixed.apply();
            by_member.apply();
            by_group.apply();
        }
    }
}
control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control TestDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.test); }
}
V1Switch(TestParser(), Check(), TestIngress(), TestEgress(), Update(), TestDeparser()) main;
