// What every program of this folder ends with; it defines headers_t, metadata_t and TestIngress before.
#ifndef PARSER
#define PARSER \
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.test); transition accept; }
#endif
#ifndef DEPARSER
#define DEPARSER packet.emit(hdr.ethernet); packet.emit(hdr.test);
#endif
#ifndef EGRESS
#define EGRESS
#endif

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    PARSER
}
#ifndef CHECKSUMS
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }
#endif
control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { EGRESS }
}
control TestDeparser(packet_out packet, in headers_t hdr) { apply { DEPARSER } }
V1Switch(TestParser(), Verify(), TestIngress(), TestEgress(), Update(), TestDeparser()) main;
