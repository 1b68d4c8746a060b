#include "../types.p4"
header varied_t { varbit<64> v; }
struct headers_t { ethernet_t ethernet; varied_t a; varied_t b; }
struct metadata_t { }
#define PARSER \
    state start { \
        packet.extract(hdr.ethernet); packet.extract(hdr.a, 16); packet.extract(hdr.b, 16); transition accept; \
    }
#define DEPARSER packet.emit(hdr.ethernet); packet.emit(hdr.a); packet.emit(hdr.b);
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.a.v == hdr.b.v) { standard.egress_spec = 1; }
    }
}
#include "../switch.p4"
