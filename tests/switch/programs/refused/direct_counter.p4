#include "../types.p4"
header test_t { bit<32> a; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets) hits;
    table counted {
        key = { hdr.test.a: exact; }
        actions = { NoAction; }
        default_action = NoAction();
        counters = hits;
    }
    apply { counted.apply(); }
}
#include "../switch.p4"
