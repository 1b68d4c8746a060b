#include "../types.p4"
// Clones, replicas, packets that come back, digests and truncation; each copy says in its header what it is.
header test_t { bit<8> todo; bit<8> kept; bit<8> lost; bit<32> instance; bit<16> replica; bit<32> length; bit<16> port; }
header extra_t { bit<32> value; }
struct headers_t { ethernet_t ethernet; test_t test; extra_t extra; }
struct metadata_t { @field_list(1) bit<8> kept; bit<8> lost; }
struct note_t { bit<8> todo; bit<16> port; }
#define DEPARSER packet.emit(hdr.ethernet); packet.emit(hdr.test); packet.emit(hdr.extra);
#define EGRESS \
    if (hdr.test.todo == 3 && standard.instance_type == 0) { \
        meta.kept = 33; meta.lost = 44; clone_preserving_field_list(CloneType.E2E, 7, 1); hdr.test.lost = 5; } \
    if (hdr.test.todo == 4 && hdr.test.kept == 0) { meta.kept = 55; recirculate_preserving_field_list(1); } \
    if (hdr.test.todo == 8) { mark_to_drop(standard); } \
    if (hdr.test.todo == 9) { truncate(20); } \
    hdr.test.kept = meta.kept; hdr.test.lost = meta.lost; hdr.test.instance = standard.instance_type; \
    hdr.test.replica = standard.egress_rid; hdr.test.length = standard.packet_length; \
    hdr.test.port = (bit<16>)standard.egress_port;
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        if (hdr.test.todo == 0) {
            mark_to_drop(standard);
        } else if (hdr.test.todo == 1) {
            meta.kept = 11;
            meta.lost = 22;
            clone_preserving_field_list(CloneType.I2E, 7, 1);
            hdr.test.lost = 6;
        } else if (hdr.test.todo == 2) {
            if (standard.instance_type == 0) {
                meta.kept = 66;
                meta.lost = 77;
                resubmit_preserving_field_list(1);
            }
        } else if (hdr.test.todo == 5) {
            standard.mcast_grp = 4;
        } else if (hdr.test.todo == 6) {
            digest<note_t>(1, { hdr.test.todo, (bit<16>)standard.ingress_port });
        } else if (hdr.test.todo == 7) {
            hdr.extra.setValid();
            hdr.extra.value = 0xfeedface;
        }
        if (standard.instance_type == 4) { standard.egress_spec = 3; }
    }
}
#include "../switch.p4"
