// Tables by hit and by action, default actions with parameters, registers and counters beyond their end,
// and an egress that changes copies and drops one.
#include "types.p4"

header test_t { bit<16> key; bit<32> index; bit<8> path; bit<8> copy; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { bit<16> before; bit<8> seen; }

#define EGRESS \
    hdr.test.copy = hdr.test.copy + (bit<8>)standard.egress_port; \
    meta.seen = meta.seen + 1; \
    hdr.test.path = hdr.test.path + meta.seen; \
    if (standard.egress_port == 5) { mark_to_drop(standard); }

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<16>>(8) seen;
    register<bit<48>>(8) last;
    counter(8, CounterType.packets_and_bytes) packets;

    action add(bit<8> number) { hdr.test.path = hdr.test.path + number; }
    action to_port(bit<9> port, bit<8> number) { standard.egress_spec = port; add(number); }
    action to_group(bit<16> group) { standard.mcast_grp = group; }
    table by_key {
        key = { hdr.test.key: exact; standard.ingress_port: exact; }
        actions = { to_port; to_group; add; }
        default_action = add(100);
        size = 4;
    }
    table by_port {
        key = { standard.ingress_port: exact; }
        actions = { add; NoAction; }
        default_action = NoAction();
        size = 512;
    }
    apply {
        packets.count(hdr.test.index);
        seen.read(meta.before, hdr.test.index);
        seen.write(hdr.test.index, meta.before + hdr.test.key);
        last.write(hdr.test.index, hdr.ethernet.dst);
        switch (by_key.apply().action_run) {
            add: { standard.egress_spec = 9; }
            to_group: { hdr.test.path = hdr.test.path + 3; }
        }
        if (!by_port.apply().hit) { hdr.test.path = hdr.test.path + 50; }
    }
}
#include "switch.p4"
