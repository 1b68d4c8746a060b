#include "../types.p4"
// Tables with an action profile, without and with a selector.
header test_t { bit<8> kind; bit<16> port; bit<8> selected; bit<8> given; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.identity, 16, 8) paths;
    action_profile(16) shared;
    action select_(bit<8> value) { hdr.test.selected = value; }
    action give(bit<8> value) { hdr.test.given = value; }
    table selected {
        key = { hdr.test.kind: exact; hdr.test.port: selector; }
        actions = { select_; NoAction; }
        implementation = paths;
    }
    table given {
        key = { hdr.test.kind: ternary; }
        actions = { give; NoAction; }
        implementation = shared;
    }
    apply {
        standard.egress_spec = standard.ingress_port;
        selected.apply();
        given.apply();
    }
}
#include "../switch.p4"
