#include "../types.p4"
header test_t { bit<32> a; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
#define PARSER \
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.test); packet.advance(hdr.test.a); transition accept; }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
#include "../switch.p4"
