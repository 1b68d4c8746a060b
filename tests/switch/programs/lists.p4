// Keys of all kinds whose entries can overlap, wide ones too, and entries that the program gives.
#include "types.p4"

header test_t {
    bit<128> address;
    bit<16> port;
    bit<8> kind;
    bit<8> by_prefix;
    bit<8> by_mask;
    bit<8> by_range;
    bit<8> if_given;
    bit<8> fixed;
    bit<8> exact;
}
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action prefix(bit<8> value) { hdr.test.by_prefix = value; }
    action mask(bit<8> value) { hdr.test.by_mask = value; }
    action range_(bit<8> value) { hdr.test.by_range = value; }
    action given(bit<8> value) { hdr.test.if_given = value; }
    action fix(bit<8> value) { hdr.test.fixed = value; }
    action found(bit<128> value) { hdr.test.address = value; hdr.test.exact = 1; }
    table by_prefix {
        key = { hdr.test.kind: exact; hdr.test.address: lpm; }
        actions = { prefix; NoAction; }
        default_action = prefix(1);
    }
    table by_mask {
        key = { hdr.test.address: ternary; hdr.test.port: ternary; hdr.test.isValid(): exact; }
        actions = { mask; NoAction; }
        default_action = NoAction;
        size = 200;
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
        key = { hdr.test.kind: ternary; hdr.test.port[15:8]: exact; }
        actions = { fix; NoAction; }
        const default_action = fix(7);
        const entries = { (0x10 &&& 0xf0, 1): fix(2); (_, 1): fix(3); (0x11, 2): fix(4); }
    }
    table by_address {
        key = { hdr.test.address: exact; }
        actions = { found; NoAction; }
        default_action = NoAction;
        const entries = { 0x100020003: found(0xfedcba98765432100123456789abcdef); 7: NoAction(); }
    }
    apply {
        standard.egress_spec = standard.ingress_port;
        if (by_prefix.apply().hit) { hdr.ethernet.dst = 1; }
        by_mask.apply();
        by_range.apply();
        if_given.apply();
        switch (fixed.apply().action_run) { fix: { hdr.ethernet.src = 2; } }
        by_address.apply();
    }
}
#include "switch.p4"
