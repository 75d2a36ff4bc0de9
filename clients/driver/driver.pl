# Runs one client program for the harness: perl driver.pl PROGRAM. The protocol is in clients/README.md.
use strict;
use warnings;
use JSON::PP;

$| = 1;
our %versions = (perl => sprintf("%vd", $^V));
do $ARGV[0] or die $@ || $!;
print encode_json({ versions => \%versions, can => ["pause", "post", "status"] }), "\n";

while (my $line = <STDIN>) {
    my ($count, undef, $method, undef, $url) = split " ", $line;
    my $body = $method eq "POST" ? "ping" : undef;
    my @outcomes = map { request($method, $url, $body) } 1 .. $count;
    # a status is a number in JSON
    print encode_json([map { /^\d+$/ ? 0 + $_ : $_ } @outcomes]), "\n";
}
