#!/usr/bin/env bash
# How the documents are written: words that hide the subject, the width of prose, the length of README and ARCHITECTURE,
# and links that lead nowhere. Needs git and perl.
#
#   ci/words.sh                   all Markdown files of the tree; `ci/lint.sh` runs this form
#   ci/words.sh --rust            the words in Rust comments and names of functions; `ci/lint.sh` runs this form, too
#   ci/words.sh --subjects BASE   subjects of the commits since BASE: 72 characters at most; `ci/lint.sh` runs this form, too
#
# The words: "who" and its kin as nouns, "that of" and "those that" for a noun that was named before, "such" as a noun. Each has
# a clearer form: name the subject again. Inline code and code blocks are not looked at.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1-}" in
    '' | --rust) ;;
    --subjects)
        base=${2:?"ci/words.sh --subjects needs a base, for instance origin/main"}
        git rev-parse --verify --quiet "$base^{commit}" >/dev/null || { echo "ci/words.sh: no commit is named '$base'" >&2; exit 2; }
        long=$(git log --format='%h %s' "$base..HEAD" | perl -CSDA -ne 'chomp; my ($id, $subject) = split / /, $_, 2; print "$id: ", length $subject, " characters: $subject\n" if length $subject > 72')
        [ -z "$long" ] || { echo "$long" >&2; echo "shorten these subjects to 72 characters" >&2; exit 1; }
        exit 0
        ;;
    *) echo "ci/words.sh: '$1' is no option; it takes nothing, --rust, or --subjects BASE" >&2; exit 2 ;;
esac

git ls-files -z --cached --others --exclude-standard -- '*.md' '*.rs' | perl -CSDA -Mstrict -Mwarnings -e '
    my $rust = ($ARGV[0] // "") eq "--rust";
    my %limits = ("README.md" => 120, "ARCHITECTURE.md" => 300);
    my $width = 150;
    my @words = (
        qr/\b(who(?:ever|m|mever)?)\b/i,
        qr/\b((?:that|those) of)\b/i,
        qr/\b(those (?:that|who|which))\b/i,
        qr/\b(such (?:a one|is|are|was|were)|as such)\b/i,
        qr/\b(such)(?=\s*[.,;:)])/i,
    );
    # What is quoted is named, not used: a word in quotation marks is left out, as inline code is.
    sub bare { my ($text) = @_; $text =~ s/`[^`]*`/`/g; $text =~ s/"[^"]*"/"/g; $text }
    sub found { my ($text) = @_; my $bare = bare($text); map { my $word = $_; $bare =~ /$word/g } @words }
    sub lines { open my $file, "<", $_[0] or die "$_[0]: $!\n"; my @lines = <$file>; chomp @lines; @lines }

    local $/ = "\0";
    my @files = map { chomp; $_ } <STDIN>;
    $/ = "\n";
    # A file that was deleted and not yet committed is listed still.
    @files = sort grep { -e } @files;
    my $failures = 0;
    my $fail = sub { print STDERR "$_[0]\n"; $failures++ };

    # Looks for the words in a line of prose. Two words may be on two lines: `$last` ends the line before. Returns the last word.
    my $look = sub {
        my ($place, $last, $line) = @_;
        my ($first, $end) = ($line =~ /^\s*(\S+)/, $line =~ /(\S+)\s*$/);
        $fail->("$place: \"$_\": name the subject") for found($line), grep { /\s/ } found("$last " . ($first // ""));
        $end // ""
    };

    if ($rust) {
        for my $file (grep { /\.rs$/ } @files) {
            my ($number, $last) = (0, "");
            for my $line (lines($file)) {
                $number++;
                my ($comment) = $line =~ m{(?:^|\s)//[/!]?(?:\s(.*))?$};
                $last = $look->("$file:$number", $last, $comment // "");
                # The name of a test is a sentence.
                my ($name) = $line =~ /\bfn (\w+)/ or next;
                $fail->("$file:$number: \"$_\": name the subject") for found($name =~ tr/_/ /r);
            }
        }
        print STDERR "$failures to mend\n" if $failures;
        exit($failures > 0);
    }

    # The anchors of a file, as GitHub makes them of headings.
    my %anchors;
    my $anchors_of = sub {
        my ($file) = @_;
        $anchors{$file} //= do {
            my (%seen, %anchors, $code);
            for (lines($file)) {
                $code = !$code if /^\s*```/;
                next if $code || !/^#+\s+(.*?)\s*#*$/;
                my $heading = $1;
                $heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
                my $slug = lc $heading;
                $slug =~ s/[^\w\- ]//g;
                $slug =~ s/ /-/g;
                my $times = $seen{$slug}++;
                $anchors{$times ? "$slug-$times" : $slug} = 1;
            }
            \%anchors
        };
    };

    for my $file (grep { /\.md$/ } @files) {
        my ($number, $code, $last) = (0, 0, "");
        my ($folder) = $file =~ m{^(.*/)};
        for my $line (lines($file)) {
            $number++;
            my $place = "$file:$number";
            if ($line =~ /^\s*```/) { $code = !$code; next }
            next if $code;
            $last = $look->($place, $last, $line);
            $fail->("$place: wrap this at $width characters") if length $line > $width && $line !~ /^\s*(?:\||!\[|#)/;
            (my $prose = $line) =~ s{`[^`]*`}{}g;
            while ($prose =~ /\]\(([^)\s]+)\)/g) {
                my $link = $1;
                next if $link =~ /^[a-z]+:/;
                my ($path, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
                my $target = $path eq "" ? $file : ($folder // "") . $path;
                1 while $target =~ s{(?:^|(?<=/))(?!\.\.?/)[^/]+/\.\./}{};
                1 while $target =~ s{(^|/)\./}{$1};
                if ($target =~ m{^\.\./} || !-e $target) { $fail->("$place: the link $link leads nowhere"); next }
                next unless defined $anchor;
                $fail->("$place: $target has no heading #$anchor") if $target !~ /\.md$/ || !$anchors_of->($target)->{$anchor};
            }
        }
        $fail->("$file has a code block that does not end") if $code;
        my $limit = $limits{$file};
        $fail->("$file has $number lines, and may have $limit") if $limit && $number > $limit;
    }
    print STDERR "$failures to mend\n" if $failures;
    exit($failures > 0);
' -- "${1-}"
