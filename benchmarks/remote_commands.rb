#!/usr/bin/env ruby
# frozen_string_literal: true

# Wall milliseconds that one command costs on another host, by the ways there are to start it there.
#
#   ruby benchmarks/remote_commands.rb HOST [SSH-OPTION ...]
#
# Each way runs `true` one after the other: here; through a worker (workflows/montage/worker.rb),
# here and there; by an ssh of its own each time, without and with a shared connection (ControlMaster).

require "tmpdir"
require_relative "../workflows/montage/hosts"
require_relative "../workflows/montage/slots"

TIMES = 100

def milliseconds
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  1000 * (Process.clock_gettime(Process::CLOCK_MONOTONIC) - start)
end

def report(way, opening_ms = 0.0, times: TIMES, &block)
  each = Array.new(times) { milliseconds(&block) }.sort
  puts format("%-34s %8.2f %8.2f %10.0f", way, each[times / 2], each[(times * 0.95).to_i], opening_ms)
end

def through_worker(way, command, elsewhere)
  connection = nil
  opening_ms = milliseconds do
    connection = Connection.new("host", command, elsewhere:)
    connection.await
  end
  report(way, opening_ms) { connection.execute(["true"]) }
ensure
  connection&.close
end

host, *options = ARGV
abort "usage: #{$PROGRAM_NAME} HOST [SSH-OPTION ...]" unless host
ENV["MONTAGE_SSH_OPTION"] = options.shelljoin
here = Slots::Here.new
puts format("%-34s %8s %8s %10s", "way", "median", "95 %", "to open")
report("here") { here.execute(["true"]) }
through_worker("worker, here", Hosts::WORKER, false)
through_worker("worker, by ssh", Hosts.command("ssh", host), true)
ssh = ["ssh", *options]
Dir.mktmpdir do |directory|
  shared = [*ssh, "-o", "ControlPath=#{directory}/c"]
  opening_ms = milliseconds { here.execute([*shared, "-o", "ControlMaster=yes", "-fN", host]) }
  report("ssh, shared connection", opening_ms) { here.execute([*shared, host, "true"]) }
  here.execute([*shared, "-O", "exit", host])
end
report("ssh", times: 20) { here.execute([*ssh, host, "true"]) }
