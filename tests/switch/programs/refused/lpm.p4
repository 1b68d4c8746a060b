#include "../types.p4"
header test_t { bit<32> a; bit<32> b; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table routes {
        key = { hdr.test.a: lpm; }
        actions = { NoAction; }
        default_action = NoAction();
    }
    apply { routes.apply(); }
}
#include "../switch.p4"
