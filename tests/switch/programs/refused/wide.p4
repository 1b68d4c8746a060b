#include "../types.p4"
header test_t { bit<32> a; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { bit<96> wide; }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<96>>(4) last;
    apply { last.read(meta.wide, 0); hdr.test.a = (bit<32>)meta.wide; }
}
#include "../switch.p4"
