# frozen_string_literal: true

require "json"
require "timeout"

# One host's worker (worker.rb), seen from the engine: many commands at once over one pipe.
class Connection
  class Lost < StandardError; end

  START_S = 60 # a login, and Ruby's first start there from a shared file system
  CLOSE_S = 3
  # Set on the host for the commands; ssh passes nothing on.
  PASSED_ON = /\A(PATH|LD_LIBRARY_PATH|GFARM_CONFIG_FILE|(BURSTLAB|MONTAGE)_.*)\z/

  attr_reader :host

  # +command+ starts the worker; +elsewhere+ says whether on another host than this one.
  def initialize(host, command, elsewhere:)
    @host = host
    @lock = Mutex.new
    @waiting = { "ready" => Thread::Queue.new } # id => where its answer is waited for
    @number = 0
    @ready = @waiting["ready"]
    # It ends what it started before it ends itself, so it must not be told to end with the rest.
    marks = { "MONTAGE_RUN" => nil, "MONTAGE_CONNECTION" => ENV["MONTAGE_RUN"] }
    @pipe = IO.popen([marks, *command], "r+")
    @pid = @pipe.pid
    @listener = Thread.new { listen }
    send(directory: Dir.pwd, environment: environment(elsewhere))
  end

  # Returns when the worker is ready.
  def await
    Timeout.timeout(START_S, Lost, "#{host}: no answer for #{START_S} s") { @ready.pop } or lost
  end

  # What a command printed, and its exit status as a shell gives it. Raises Lost.
  def execute(argv)
    answer = Thread::Queue.new
    id = @lock.synchronize do
      lost if @ended
      @waiting[@number += 1] = answer
      @number
    end
    send(id:, command: argv)
    answer.pop&.values_at("output", "status") or lost
  end

  def show_life = write("\n")

  # Ends the commands there, and waits until they have.
  def close
    @lock.synchronize do
      @pipe.close_write unless @closing || @pipe.closed?
      @closing = true
    end
    return if @listener.join(CLOSE_S)

    warn "montage: #{host}: commands may still run: its worker did not end"
    Process.kill("KILL", @pid)
  rescue Errno::ESRCH # it has just ended
  end

  private

  # On another host, burstlab's agent knows the processes of a cell by its name and the host's.
  def environment(elsewhere)
    passed = ENV.to_h.select { |name, _| PASSED_ON.match?(name) }.except("MONTAGE_RUN")
    passed["BURSTLAB_CELL"] += ".#{host}" if elsewhere && passed.key?("BURSTLAB_CELL")
    passed
  end

  def send(**fields) = write("#{JSON.generate(fields)}\n") || lost

  # Whether it could be written.
  def write(line)
    @lock.synchronize { @pipe.write(line) }
    true
  rescue SystemCallError, IOError
    false
  end

  def listen
    while (line = @pipe.gets)
      answer = parse(line) or next
      @lock.synchronize { @waiting.delete(answer["id"] || "ready") }&.push(answer)
    end
  ensure
    @pipe.close
    @ended = $?.exitstatus || (128 + $?.termsig)
    @lock.synchronize { @waiting.each_value(&:close) }
  end

  # An answer, or something that a login prints.
  def parse(line)
    answer = JSON.parse(line)
    answer if answer.is_a?(Hash)
  rescue JSON::ParserError
    warn "#{host}: #{line}"
  end

  def lost
    raise Lost, "#{host}: the connection is lost (it ended with status #{@ended || 'unknown'})"
  end
end
