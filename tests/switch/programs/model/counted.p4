#include "../types.p4"
// What is kept for each entry: packets and bytes, and when it last matched; values that the control plane gives a parser.
header test_t { bit<32> address; bit<16> port; bit<8> kind; bit<8> prefix; bit<8> exact; bit<8> mask; }
header more_t { bit<16> value; }
struct headers_t { ethernet_t ethernet; test_t test; more_t more; }
struct metadata_t { }

#define PARSER \
    value_set<bit<24>>(4) pairs; \
    state start { \
        packet.extract(hdr.ethernet); packet.extract(hdr.test); \
        transition select(hdr.test.port ++ hdr.test.kind) { pairs: more; default: accept; } \
    } \
    state more { packet.extract(hdr.more); transition accept; }
#define DEPARSER packet.emit(hdr.ethernet); packet.emit(hdr.test); packet.emit(hdr.more);

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) by_prefix_seen;
    direct_counter(CounterType.packets) by_mask_seen;
    action prefix(bit<8> value) { hdr.test.prefix = value; by_prefix_seen.count(); }
    action exact_(bit<8> value) { hdr.test.exact = value; }
    action mask(bit<8> value) { hdr.test.mask = value; by_mask_seen.count(); }
    action masked() { by_mask_seen.count(); }
    table by_prefix {
        key = { hdr.test.address: lpm; }
        actions = { prefix; }
        default_action = prefix(1);
        counters = by_prefix_seen;
        size = 20000;
    }
    table by_exact {
        key = { hdr.test.port: exact; hdr.test.kind: exact; }
        actions = { exact_; NoAction; }
        default_action = NoAction;
        support_timeout = true;
        size = 16;
    }
    table by_mask {
        key = { hdr.test.port: ternary; hdr.test.kind: ternary; }
        actions = { mask; masked; }
        default_action = masked();
        counters = by_mask_seen;
        support_timeout = true;
        size = 16;
    }
    table by_kind {
        key = { hdr.test.kind: exact; }
        actions = { exact_; NoAction; }
        default_action = NoAction;
        support_timeout = true;
    }
    apply {
        standard.egress_spec = standard.ingress_port;
        by_prefix.apply();
        if (by_exact.apply().hit) { hdr.ethernet.dst = 1; }
        by_mask.apply();
        if (!by_kind.apply().hit) { hdr.ethernet.src = 2; }
        if (hdr.more.isValid()) { hdr.more.value = hdr.more.value + 1; }
    }
}
#include "../switch.p4"
