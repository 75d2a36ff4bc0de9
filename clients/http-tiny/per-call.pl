# snippet
use HTTP::Tiny;

# in the handler, for each call: my $http = HTTP::Tiny->new;
# end

our %versions;
$versions{"HTTP::Tiny"} = HTTP::Tiny->VERSION;

sub request {
    my ($method, $url, $body) = @_;
    my $response = HTTP::Tiny->new->request($method, $url, defined $body ? { content => $body } : {});
    return $response->{status} == 599 ? $response->{content} : $response->{status};
}
1;
