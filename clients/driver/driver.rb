# Runs one client program for the harness: ruby driver.rb PROGRAM. The protocol is in clients/README.md.
require "json"
require ARGV[0]

# what a program has beside `request`: unread, VERSIONS
can = %w[pause concurrent post status]
can << "unread" if respond_to?(:unread, true)
versions = { ruby: RUBY_VERSION }
versions.update(VERSIONS) if defined?(VERSIONS)
puts JSON.generate(versions: versions, can: can)
$stdout.flush

def outcome(method, url, read)
  read ? request(method, url, method == "POST" ? "ping" : nil) : unread(url)
rescue StandardError => error
  error.class.name
end

# threads as a program would have them: they live on from step to step
jobs = Queue.new
10.times { Thread.new { loop { jobs.pop.call } } }

while (line = $stdin.gets)
  count, order, method, body, url = line.split
  read = body == "read"
  if order == "at-once"
    done = Queue.new
    count.to_i.times { jobs << -> { done << outcome(method, url, read) } }
    outcomes = Array.new(count.to_i) { done.pop }
  else
    outcomes = Array.new(count.to_i) { outcome(method, url, read) }
  end
  puts JSON.generate(outcomes)
  $stdout.flush
end
exit!(true)
