# snippet
require "httparty"

# per request: HTTParty.get(url)
# end

VERSIONS = { httparty: HTTParty::VERSION }

def request(method, url, body)
  HTTParty.public_send(method.downcase, url, body: body, ssl_ca_file: ENV["INTACT_CA"]).code
end
