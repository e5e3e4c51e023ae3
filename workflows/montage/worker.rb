# frozen_string_literal: true

require "json"

# The far end of a connection to one host (hosts.rb): runs Montage commands there, side by side.
#
# Lines of JSON on stdin: first {directory, environment}, answered by {ready}; then {id, command},
# each answered by {id, output, status} when the command has ended. An empty line is a sign of life.
# When stdin ends, or nothing comes for SILENCE_S, nobody wants the commands any more: they are
# killed, all of them, before this process ends.
class Worker
  SILENCE_S = 30

  def initialize(input, output)
    @input = input
    @output = output
    @writing = Mutex.new
    @running = {} # pid => its thread
    @starting = Mutex.new
    @ending = false
    @heard = now
  end

  def serve
    hello = JSON.parse(@input.gets || exit)
    Dir.chdir(hello["directory"])
    ENV.update(hello["environment"])
    Thread.new { end_when_silent }
    answer(ready: true)
    obey while (@line = @input.gets)
  ensure
    end_all
  end

  private

  def obey
    @heard = now
    order = JSON.parse(@line) unless @line == "\n"
    Thread.new { answer(id: order["id"], **run(order["command"])) } if order
  end

  def run(command)
    pipe = start(command)
    pid = pipe.pid
    output = pipe.read.force_encoding("UTF-8").scrub
    pipe.close
    { output:, status: $?.exitstatus || (128 + $?.termsig) }
  rescue SystemCallError => e
    { output: e.message, status: 127 }
  ensure
    @starting.synchronize { @running.delete(pid) }
  end

  # In a process group of its own, for it may be more than one process.
  def start(command)
    @starting.synchronize do
      Thread.exit if @ending
      pipe = IO.popen([*command, { err: %i[child out], pgroup: true }])
      @running[pipe.pid] = Thread.current
      pipe
    end
  end

  def end_all
    running = @starting.synchronize do
      @ending = true
      @running.dup
    end
    running.each_key do |pid|
      Process.kill("KILL", -pid)
    rescue Errno::ESRCH # it has just ended
    end
    running.each_value { |thread| thread.join(1) }
  end

  def end_when_silent
    sleep 1 until now > @heard + SILENCE_S
    end_all
    exit!(1)
  end

  def answer(**fields)
    @writing.synchronize do
      @output.write("#{JSON.generate(fields)}\n")
      @output.flush
    end
  rescue Errno::EPIPE # nobody listens: stdin ends as well
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

Worker.new($stdin, $stdout).serve if $PROGRAM_NAME == __FILE__
