#include "../types.p4"
header test_t { bit<32> a; bit<32> b; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<32> b) { hdr.test.b = b; }
    table fixed {
        key = { hdr.test.a: exact; }
        actions = { set; NoAction; }
        default_action = NoAction();
        const entries = { 1: set(2); }
    }
    apply { fixed.apply(); }
}
#include "../switch.p4"
