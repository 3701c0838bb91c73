urgency::levels! {
    Many: L0 > L1 > L2 > L3 > L4 > L5 > L6 > L7 > L8 > L9 > L10 > L11 > L12 > L13 > L14 > L15
        > L16 > L17 > L18 > L19 > L20 > L21 > L22 > L23 > L24 > L25 > L26 > L27 > L28 > L29 > L30
        > L31 > L32 > L33 > L34 > L35 > L36 > L37 > L38 > L39 > L40 > L41 > L42 > L43 > L44 > L45
        > L46 > L47 > L48 > L49 > L50 > L51 > L52 > L53 > L54 > L55 > L56 > L57 > L58 > L59 > L60
        > L61 > L62 > L63;
    L0 > OneMore
}

fn main() {}
