#include "../types.p4"
// Drops in a copy of standard_metadata: p4c copies it into an action outside of a control, and back.
header test_t { bit<8> todo; bit<8> unused; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
action drop(inout standard_metadata_t standard) { mark_to_drop(standard); }
action forget(in standard_metadata_t standard) {
    standard_metadata_t copy = standard;
    mark_to_drop(copy);
}
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        if (hdr.test.todo == 1) {
            drop(standard);
        } else if (hdr.test.todo == 2) {
            forget(standard);
        } else if (hdr.test.todo == 3) {
            drop(standard);
            standard.egress_spec = 3;
        }
    }
}
#include "../switch.p4"
