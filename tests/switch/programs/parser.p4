// Masks and ranges in select, a header that stands at two offsets, and one that is often not there.
#include "types.p4"

header tag_t { bit<16> number; bit<16> ethertype; }
header test_t { bit<8> kind; bit<8> value; }
header more_t { bit<32> value; }
struct headers_t { ethernet_t ethernet; tag_t tag; test_t test; more_t more; }
struct metadata_t { bit<8> path; }

#define PARSER \
    state start { packet.extract(hdr.ethernet); meta.path = 1; transition select(hdr.ethernet.ethertype) { \
        0x9100: tag; 0x9200 &&& 0xff00: test; default: accept; } } \
    state tag { packet.extract(hdr.tag); meta.path = meta.path + 1; \
        transition select(hdr.tag.number, hdr.tag.ethertype) { (0 &&& 0, 0x9200): test; default: accept; } } \
    state test { packet.extract(hdr.test); transition select(hdr.test.kind) { \
        3 .. 9: more; 0x80 &&& 0xf0: more; 1: accept; } } \
    state more { packet.extract(hdr.more); transition accept; }
#define DEPARSER packet.emit(hdr.ethernet); packet.emit(hdr.tag); packet.emit(hdr.test); packet.emit(hdr.more);

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = (bit<9>)meta.path;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 100 + (bit<9>)meta.path;
        }
        if (hdr.test.isValid()) { hdr.test.value = hdr.test.value + 1; }
        if (hdr.more.isValid()) { hdr.more.value = hdr.more.value + 0x01020304; }
    }
}
#include "switch.p4"
