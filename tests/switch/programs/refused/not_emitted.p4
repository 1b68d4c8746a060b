#include "../types.p4"
header test_t { bit<32> a; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
#define DEPARSER packet.emit(hdr.ethernet);
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.test.a = 1; }
}
#include "../switch.p4"
