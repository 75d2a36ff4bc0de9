# snippet
require "faraday"

CONNECTION = Faraday.new # one for the whole program; its adapter opens a connection for each request
# end

VERSIONS = { faraday: Faraday::VERSION }
CONNECTION.ssl.ca_file = ENV["INTACT_CA"]

def request(method, url, body)
  CONNECTION.run_request(method.downcase.to_sym, url, body, nil).status
end
