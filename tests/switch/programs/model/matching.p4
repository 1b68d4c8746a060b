#include "../types.p4"
// Every kind of key; each table leaves its result in a field of its own.
header test_t {
    bit<32> address;
    bit<16> port;
    bit<8> kind;
    bit<8> by_prefix;
    bit<8> by_mask;
    bit<8> by_range;
    bit<8> if_given;
    bit<8> fixed;
    bit<8> after;
}
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.packets) rate;
    action prefix(bit<8> value) { hdr.test.by_prefix = value; }
    action mask(bit<8> value) { hdr.test.by_mask = value; hits.count(); }
    action range_(bit<8> value) { hdr.test.by_range = value; }
    action given(bit<8> value) { hdr.test.if_given = value; }
    action fix(bit<8> value) { hdr.test.fixed = value; }
    action coloured() { rate.read(hdr.test.after); }
    table by_prefix {
        key = { hdr.test.kind: exact; hdr.test.address: lpm; }
        actions = { prefix; NoAction; }
        default_action = prefix(1);
    }
    table by_mask {
        key = { hdr.test.address: ternary; hdr.test.port: ternary; hdr.ethernet.isValid(): exact; }
        actions = { mask; @defaultonly NoAction; }
        counters = hits;
        default_action = NoAction;
    }
    table by_range {
        key = { hdr.test.port: range; hdr.test.kind: exact; }
        actions = { range_; }
        default_action = range_(99);
    }
    table if_given {
        key = { hdr.test.port: optional; hdr.test.kind: optional; }
        actions = { given; NoAction; }
        default_action = NoAction;
    }
    table fixed {
        key = { hdr.test.kind: ternary; hdr.test.address[15:8]: exact; }
        actions = { fix; NoAction; }
        const default_action = fix(7);
        const entries = {
            (0x10 &&& 0xf0, 1): fix(2);
            (_, 1): fix(3);
            (0x11, 2): fix(4);
        }
    }
    table metered {
        key = { hdr.test.kind: exact; }
        actions = { coloured; NoAction; }
        meters = rate;
        default_action = NoAction;
    }
    apply {
        standard.egress_spec = standard.ingress_port;
        if (!by_prefix.apply().hit) { hdr.test.after = 100; }
        switch (by_mask.apply().action_run) {
            mask: { hdr.test.after = hdr.test.after + 1; }
            default: { hdr.test.after = hdr.test.after + 2; }
        }
        by_range.apply();
        if_given.apply();
        fixed.apply();
        metered.apply();
        if (hdr.test.kind == 0xff) { exit; }
        hdr.test.fixed = hdr.test.fixed + 128;
    }
}
#include "../switch.p4"
