// Copies: every packet goes to a multicast group, and a clone of it to mirror session 7.
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> kind; bit<8> replica; }
struct headers_t { tag_t tag; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.tag); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.mcast_grp = 3; clone(CloneType.I2E, 7); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.tag.kind = (bit<8>)standard.instance_type; hdr.tag.replica = (bit<8>)standard.egress_rid; }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.tag); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
