# snippet
require "faraday"
require "net/http/persistent" # the gem net-http-persistent

CONNECTION = Faraday.new { |build| build.adapter :net_http_persistent } # one for the whole program
# end

VERSIONS = { faraday: Faraday::VERSION, "net-http-persistent": Net::HTTP::Persistent::VERSION }
CONNECTION.ssl.ca_file = ENV["INTACT_CA"]

def request(method, url, body)
  CONNECTION.run_request(method.downcase.to_sym, url, body, nil).status
end
