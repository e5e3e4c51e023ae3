# frozen_string_literal: true

require "rbconfig"
require "shellwords"
require "socket"
require_relative "connection"

# The hosts of a run under plain rake: one connection to each, and as many slots as it has cores.
#
# A command takes a free slot and runs on the slot's host. A connection is opened once, by ssh or
# srun, and leads to a worker (worker.rb) that runs all commands of its host, so a command costs a
# line there and a line back.
class Hosts
  WORKER = [RbConfig.ruby, "--disable=gems", File.join(__dir__, "worker.rb")].freeze
  SSH = %w[ssh -x -T -o BatchMode=yes -o ConnectTimeout=10
           -o ServerAliveInterval=5 -o ServerAliveCountMax=3].freeze
  # --overlap: with the steps that burstlab has on the same hosts.
  SRUN = %w[srun --nodes 1 --ntasks 1 --overlap --cpu-bind=none --mpi=none --quiet].freeze
  LIFE_S = 5 # between two signs of life

  class << self
    # {host => cores} of a file with lines of `host cores`, as Pwrake reads it.
    def read(path)
      File.readlines(path, chomp: true).map(&:split).to_h { |host, count| [host, Integer(count)] }
    end

    # Those of the names that mean this host.
    def here(names)
      mine = Socket.ip_address_list.map(&:ip_address)
      names.select { |host| host == "localhost" || (addresses(host) & mine).any? }
    end

    # What starts the worker of a host; traced, where the cell is (burstlab run --trace-io).
    def command(remote, host)
      worker = [*ENV.fetch("BURSTLAB_TRACE", "").shellsplit, *WORKER]
      case remote
      when "ssh" then [*SSH, *ENV.fetch("MONTAGE_SSH_OPTION", "").shellsplit, host, worker.shelljoin]
      when "srun" then [*SRUN, "--nodelist", host, *worker]
      end
    end

    private

    def addresses(host)
      Addrinfo.getaddrinfo(host, nil).map(&:ip_address)
    rescue SocketError # a name that this host does not know is not its own
      []
    end
  end

  # Raises Connection::Lost when a host does not answer.
  def initialize(cores, remote)
    here = Hosts.here(cores.keys)
    @connections = cores.keys.map do |host|
      elsewhere = !here.include?(host)
      Connection.new(host, elsewhere ? Hosts.command(remote, host) : WORKER, elsewhere:)
    end
    @connections.each(&:await)
    Thread.new { @connections.each(&:show_life) while sleep LIFE_S }
    @free = Thread::Queue.new
    # The hosts in turn, so that few commands use them all.
    (0...cores.values.max).each do |number|
      @connections.each { |connection| @free << connection if number < cores[connection.host] }
    end
  end

  # Gives a free slot to the block, as soon as there is one.
  def take
    slot = @free.pop
    yield slot
  ensure
    @free << slot if slot
  end

  # Ends all commands on all hosts.
  def close = @connections.each(&:close)
end
