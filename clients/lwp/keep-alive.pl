# snippet
use LWP::UserAgent;

my $agent = LWP::UserAgent->new(keep_alive => 10); # idle connections kept, one for the whole program
# end

our %versions;
$versions{LWP} = LWP->VERSION;
$agent->ssl_opts(SSL_ca_file => $ENV{INTACT_CA});

sub request {
    my ($method, $url, $body) = @_;
    my $response = $agent->request(HTTP::Request->new($method, $url, undef, $body));
    # LWP makes a response of its own errors
    return $response->header("Client-Warning") ? $response->message : $response->code;
}
1;
