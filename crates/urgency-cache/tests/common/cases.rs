//! Requests with memcached 1.6.18's answers, each case on a new server. `tests/exact.rs` checks this server against
//! them, `tests/differential.rs` checks them against memcached.

/// What a case is about, and its requests with their answers.
pub type Case = (&'static str, &'static [(&'static str, &'static str)]);

const TOO_LONG: &str = "CLIENT_ERROR opaque token too long\r\n";
const INVALID: &str = "CLIENT_ERROR invalid or duplicate flag\r\n";
const BAD_LINE: &str = "CLIENT_ERROR bad command line format\r\n";

/// See the module's text.
pub const CASES: &[Case] = &[
    (
        "an item that mg makes has no end before its flag N is reached",
        &[
            ("mg k t N100\r\n", "HD t-1 W\r\n"),
            ("mg k t\r\n", "HD t100 Z\r\n"),
            ("mg l N100 t\r\n", "HD t100 W\r\n"),
            ("mg m T50 t N100\r\n", "HD t50 W\r\n"),
            ("mg o N100 T50 t v\r\n", "VA 0 t50 W\r\n\r\n"),
        ],
    ),
    (
        "T takes effect at its place",
        &[
            ("ms k 1 T100\r\nx\r\n", "HD\r\n"),
            ("mg k t T50\r\n", "HD t100\r\n"),
            ("mg k T200 t\r\n", "HD t200\r\n"),
            ("mg k R150 T100 t\r\n", "HD t100\r\n"),
            ("mg k T100 R150 t\r\n", "HD t100 W\r\n"),
            ("mg k R150\r\n", "HD Z\r\n"),
        ],
    ),
    (
        "R after N wins nothing for a new item",
        &[
            ("mg k N30 R60\r\n", "HD W\r\n"),
            ("mg l R60 N30\r\n", "HD W\r\n"),
            ("mg l R60 t\r\n", "HD t30 Z\r\n"),
        ],
    ),
    (
        "a number that ma makes has no end before its flag N is reached",
        &[
            ("ma n t N100\r\n", "HD t-1\r\n"),
            ("ma n t\r\n", "HD t100\r\n"),
            ("ma m N100 t J7 v\r\n", "VA 1 t100\r\n7\r\n"),
            ("ma m T50 t v q\r\nmg m t v\r\n", "VA 1 t50\r\n8\r\n"),
            ("ma o q N100 v\r\n", "VA 1\r\n0\r\n"),
        ],
    ),
    (
        "a key goes back in base 64 if it was stored so",
        &[
            ("ms YWI= 1 b k\r\nx\r\n", "HD kYWI= b\r\n"),
            ("mg YWI= b k\r\nmg ab k\r\n", "HD kYWI= b\r\nHD kYWI= b\r\n"),
            ("ms cd 1 k\r\nx\r\n", "HD kcd\r\n"),
            ("mg Y2Q= b k\r\n", "HD kcd\r\n"),
            ("mg ZWY= b k N0\r\n", "HD kef W\r\n"),
            ("mg eHg= b k\r\n", "EN keHg= b\r\n"),
            ("md Y2Q= b k\r\n", "HD kY2Q= b\r\n"),
            ("ms YWI= 1 b k MA\r\ny\r\n", "HD kYWI= b\r\n"),
            ("mg ab k v\r\n", "VA 2 kab\r\nxy\r\n"),
        ],
    ),
    (
        "base 64 passes over what is no digit, and an answer is written anew",
        &[
            ("mg YW-I= b k\r\n", "EN kYWI= b\r\n"),
            ("mg YWI b\r\n", "CLIENT_ERROR error decoding key\r\n"),
            ("md YWI b\r\n", INVALID),
            ("ms YWI 1 b\r\nx\r\n", "CLIENT_ERROR error decoding key\r\n"),
            ("me YWI b\r\n", BAD_LINE),
        ],
    ),
    (
        "the modes of ms and ma are capital letters",
        &[
            (
                "ms k 1 Me\r\nx\r\n",
                "CLIENT_ERROR invalid mode for ms M token\r\n",
            ),
            (
                "ma k Mi\r\n",
                "CLIENT_ERROR invalid mode for ma M token\r\n",
            ),
        ],
    ),
    (
        "of several wrong flags the last is named, unless one cannot be read at all",
        &[
            (
                "mg k Tx Dx\r\n",
                "CLIENT_ERROR invalid numeric delta value\r\n",
            ),
            (
                "mg k Dx Fx\r\n",
                "CLIENT_ERROR invalid numeric delta value\r\n",
            ),
            ("mg k Fx\r\n", BAD_LINE),
            ("mg k Tx !\r\n", "CLIENT_ERROR invalid flag\r\n"),
            ("mg k Tx v v\r\n", "CLIENT_ERROR duplicate flag\r\n"),
        ],
    ),
    (
        "an opaque token that is too long is an error where it would be returned",
        &[
            ("ms k 1 T100\r\nx\r\n", "HD\r\n"),
            ("mg k T50 Ooooooooooooooooooooooooooooooooo h\r\n", TOO_LONG),
            ("mg k h t\r\n", "HD h0 t50\r\n"),
            ("mg none q Ooooooooooooooooooooooooooooooooo\r\n", TOO_LONG),
            (
                "md k Ooooooooooooooooooooooooooooooooo\r\nmg k s\r\n",
                "CLIENT_ERROR opaque token too long\r\nHD s1\r\n",
            ),
            (
                "ms k 2 Ooooooooooooooooooooooooooooooooo\r\nyy\r\nmg k s\r\n",
                "CLIENT_ERROR opaque token too long\r\nHD s1\r\n",
            ),
            (
                "ms k 2 MX Ooooooooooooooooooooooooooooooooo\r\nyy\r\n",
                "CLIENT_ERROR invalid mode for ms M token\r\n",
            ),
        ],
    ),
    (
        "so many flags and no more, and the value of ms is then a command",
        &[
            (
                "mg k a b c d e f g h i j k l m n o p q r\r\n",
                "CLIENT_ERROR options flags are too long\r\n",
            ),
            (
                "ms k 1 a b c d e f g h i j k l m n o p q\r\nx\r\n",
                "CLIENT_ERROR options flags too long\r\nERROR\r\n",
            ),
            (
                "md k a b c d e f g h i j k l m n o p q r\r\n",
                "CLIENT_ERROR options flags too long\r\n",
            ),
        ],
    ),
    (
        "an append makes a new item, whose marks are clear",
        &[
            ("ms k 1\r\nx\r\n", "HD\r\n"),
            ("md k I\r\nmg k h\r\n", "HD\r\nHD h0 X W\r\n"),
            ("ms k 1 MA\r\ny\r\nmg k h v\r\n", "HD\r\nVA 2 h0\r\nxy\r\n"),
        ],
    ),
    (
        "so does a number that becomes longer; one that does not stays",
        &[
            ("ms n 1 T100 F7\r\n8\r\nmd n I\r\n", "HD\r\nHD\r\n"),
            ("incr n 1\r\nmg n f t\r\n", "9\r\nHD f7 t100 X W\r\n"),
            (
                "incr n 1\r\nmg n f t v h\r\n",
                "10\r\nVA 2 f7 t100 h0\r\n10\r\n",
            ),
        ],
    ),
    (
        "an empty value is no number, whatever its version",
        &[
            ("ms n 0\r\n\r\n", "HD\r\n"),
            (
                "ma n C99\r\n",
                "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            ),
        ],
    ),
    (
        "a number of 32 bits is the lower half of what was sent",
        &[
            ("set k 4294967296 0 1\r\nx\r\n", "STORED\r\n"),
            (
                "set k 4294967303 0 1\r\nx\r\nget k\r\n",
                "STORED\r\nVALUE k 7 1\r\nx\r\nEND\r\n",
            ),
            (
                "set k 0 4294967396 1\r\nx\r\nmg k t\r\n",
                "STORED\r\nHD t100\r\n",
            ),
            ("set k 0 0 4294967297\r\nx\r\n", "STORED\r\n"),
            (
                "ms k 4294967297 F4294967297\r\nx\r\nmg k f\r\n",
                "HD\r\nHD f1\r\n",
            ),
            (
                "set k -1 0 1\r\nx\r\n",
                "CLIENT_ERROR bad command line format\r\nERROR\r\n",
            ),
            (
                "set k 18446744073709551616 0 1\r\nx\r\n",
                "CLIENT_ERROR bad command line format\r\nERROR\r\n",
            ),
        ],
    ),
    (
        "gat needs no key",
        &[
            ("gat 10\r\n", "END\r\n"),
            (
                "gat\r\ngat x\r\n",
                "ERROR\r\nCLIENT_ERROR invalid exptime argument\r\n",
            ),
        ],
    ),
];
