// The states of the parser that take the values of a pass: after what `parser.p4` has taken.

    state half {
        transition select(PASS) {
            SECOND_PASS: passed;
            default: values;
        }
    }
    state passed {
        packet.extract(hdr.passed);
        packet.extract(hdr.values);
        transition accept;
    }
    state values {
        packet.extract(hdr.values);
        VALUES_BESIDE
        transition accept;
    }
