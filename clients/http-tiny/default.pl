# snippet
use HTTP::Tiny;

my $http = HTTP::Tiny->new; # one for the whole program
# end

our %versions;
$versions{"HTTP::Tiny"} = HTTP::Tiny->VERSION;

sub request {
    my ($method, $url, $body) = @_;
    my $response = $http->request($method, $url, defined $body ? { content => $body } : {});
    return $response->{status} == 599 ? $response->{content} : $response->{status};
}
1;
