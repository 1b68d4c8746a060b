#include "types.p4"
// Random numbers, log messages, assertions; in the parser, how far a header stack is filled.
header test_t { bit<8> kind; bit<16> low; bit<16> high; bit<16> drawn; bit<64> wide; bit<32> last; }
header label_t { bit<7> value; bit<1> bottom; }
struct headers_t { ethernet_t ethernet; test_t test; label_t[3] labels; }
struct metadata_t { bit<32> last; }

#define PARSER \
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.test); \
        transition select(hdr.test.kind) { 0: accept; default: labels; } } \
    state labels { packet.extract(hdr.labels.next); meta.last = hdr.labels.lastIndex; \
        transition select(hdr.labels.last.bottom) { 1: accept; default: labels; } }
#define DEPARSER packet.emit(hdr);
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.ingress_port;
        hdr.test.last = meta.last;
        log_msg("kind {} of {}", { hdr.test.kind, hdr.test.last });
        assert(hdr.test.kind != 200);
        random(hdr.test.drawn, hdr.test.low, hdr.test.high);
        if (hdr.test.kind == 3) { random(hdr.test.wide, 0, 64w0xffffffffffffffff); }
    }
}
#include "switch.p4"
