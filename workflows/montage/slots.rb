# frozen_string_literal: true

require "etc"
require_relative "hosts"

# Where a command runs: `take` gives a slot, which has a `host` and can `execute` a command.
module Slots
  # Whatever the engine and its environment say. What is opened is closed with this process.
  def self.open
    return OfPwrake.new if defined?(::Pwrake)
    return Here.new unless ENV.key?("MONTAGE_HOSTS")

    hosts = Hosts.new(Hosts.read(ENV["MONTAGE_HOSTS"]), ENV.fetch("MONTAGE_REMOTE"))
    at_exit { hosts.close }
    hosts
  end

  # This host alone: rake's own threads are its slots.
  class Here
    def take = yield(self)
    def host = Etc.uname[:nodename]

    # $? belongs to the thread, so commands that run side by side do not mix. A thread that is
    # ended with its engine ends its command first, or that would go on writing.
    def execute(argv)
      pipe = IO.popen([*argv, { err: %i[child out] }])
      output = pipe.read
      pipe.close
      [output, $?.exitstatus || (128 + $?.termsig)]
    ensure
      unless pipe.nil? || pipe.closed?
        Process.kill("KILL", pipe.pid)
        pipe.close
      end
    end
  end

  # The host and core that Pwrake chose for the task.
  class OfPwrake
    def take = yield(self)
    def host = Pwrake::Shell.current.host

    def execute(argv)
      shell = Pwrake::Shell.current
      output = shell.backquote(argv.shelljoin)
      status = shell.status
      status = status[/\Akilled:(\d+)/, 1] ? 128 + $1.to_i : 255 unless status.is_a?(Integer)
      [output, status]
    end
  end
end
