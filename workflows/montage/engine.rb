# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "hosts"

# How one engine is started on the Rakefile: its command line and what it needs beside it.
# Whichever is taken is told by the engine's own process, in facts.json.
module Engine
  class Unusable < StandardError; end

  RAKEFILE = File.join(__dir__, "Rakefile")
  QUIET = ["--quiet", "--suppress-backtrace", "."].freeze

  module_function

  # +wanted+ is "rake", "pwrake" or nil: Pwrake then, where there is one, but for who says how
  # rake is to reach other hosts. +remote+ says that: "ssh", "srun" or nil, srun in a Slurm job then.
  def choose(wanted, remote, cell)
    raise Unusable, "Pwrake reaches hosts by ssh only" if wanted == "pwrake" && remote == "srun"

    pwrake = pwrake_program unless wanted == "rake" || (remote && !wanted)
    return Pwrake.new(pwrake, cell) if pwrake
    return PlainRake.new(cell, remote) unless wanted == "pwrake"

    raise Unusable, "--engine pwrake: no pwrake on PATH; set PWRAKE to a Pwrake checkout or program"
  end

  def pwrake_program
    given = ENV["PWRAKE"] or return on_path("pwrake")
    [given, File.join(given, "bin/pwrake")].find { |path| File.file?(path) } or
      raise Unusable, "PWRAKE=#{given}: neither a program nor a checkout that has bin/pwrake"
  end

  def on_path(program)
    places = ENV["PATH"].split(":").map { |place| File.join(place, program) }
    places.find { |path| File.executable?(path) && !File.directory?(path) }
  end

  # What burstlab tells of the cell; +cores+ is {host => cores to use on it}.
  class Cell
    attr_reader :directory, :mount, :cores

    def initialize(environment)
      @directory = File.realpath(environment.fetch("BURSTLAB_CELL_DIR", "."))
      @mount = File.realpath(environment.fetch("BURSTLAB_MOUNT", "."))
      data = environment.fetch("BURSTLAB_DATA", "")
      raise Unusable, "BURSTLAB_DATA: give the directory of the input tiles" if data.empty?

      @data = File.expand_path(data)
      @cores = Hash.new(0)
      count(environment["BURSTLAB_HOSTFILE"], environment.fetch("BURSTLAB_CORES", "1"))
    end

    # The engine starts in another directory.
    def paths = { "BURSTLAB_CELL_DIR" => @directory, "BURSTLAB_DATA" => @data }

    # Lines of `host cores`.
    def write_hosts(path) = File.write(path, cores.map { |host, n| "#{host} #{n}\n" }.join)

    private

    # One line for each node, its cores behind its name where they are told (Pwrake's hostfile);
    # the nodes of one host share its name.
    def count(path, per_node)
      lines = path ? File.readlines(path, chomp: true) : ["localhost"]
      lines.map(&:split).reject(&:empty?).each do |host, cores, *rest|
        cores = Integer(cores || per_node, exception: false)
        usable = cores&.positive? && rest.empty?
        raise Unusable, "#{path}: #{host}: give `host` or `host cores`" unless usable

        @cores[host] += cores
      end
    end
  end

  # Commands run side by side: on this host, or on all hosts through a worker on each (hosts.rb).
  class PlainRake
    def initialize(cell, remote)
      @cell = cell
      @alone = Hosts.here(cell.cores.keys) == cell.cores.keys
      @remote = remote || (Engine.on_path("srun") && ENV.key?("SLURM_JOB_ID") ? "srun" : "ssh")
      return if @alone || Engine.on_path(@remote)

      raise Unusable, "no #{@remote} on PATH, to reach #{cell.cores.keys.last}"
    end

    def command
      program = Engine.on_path("rake") or raise Unusable, "no rake on PATH (Debian package rake)"
      jobs = @cell.cores.values.sum.to_s
      [program, *QUIET, "--multitask", "--jobs", jobs, "--rakefile", RAKEFILE]
    end

    def environment
      return { "MONTAGE_HOSTS" => nil, "MONTAGE_REMOTE" => nil } if @alone

      hosts = File.join(@cell.directory, "rake.hosts")
      @cell.write_hosts(hosts)
      { "MONTAGE_HOSTS" => hosts, "MONTAGE_REMOTE" => @remote }
    end
  end

  # Commands run on all hosts, through one Ruby worker on each.
  class Pwrake
    def initialize(program, cell)
      @program = program
      @cell = cell
    end

    def command
      FileUtils.rm_rf(log_path) # of an earlier try: Pwrake would take another name
      @cell.write_hosts(hosts_path)
      File.write(settings_path, JSON.generate(settings)) # JSON is YAML
      ["ruby", "-r", File.join(__dir__, "pwrake_monitor.rb"), @program, *QUIET,
       "--pwrake-conf", settings_path, "--filesystem", ENV.fetch("MONTAGE_FILESYSTEM", "nfs"),
       "--rakefile", RAKEFILE]
    end

    # Pwrake prefers a variable of the environment over its settings; DEBUG or LOG_DIR may be
    # there for somebody else.
    def environment = settings.transform_values { nil }.merge("PBS_NODEFILE" => nil)

    private

    def hosts_path = File.join(@cell.directory, "pwrake.hosts")
    def log_path = File.join(@cell.directory, "pwrake")
    def settings_path = File.join(@cell.directory, "pwrake.yaml")

    def settings
      { "HOSTFILE" => hosts_path, "WORK_DIR" => @cell.mount,
        "LOG_DIR" => log_path.gsub("%", "%%"), # a strftime format
        "SSH_OPTION" => ENV.fetch("MONTAGE_SSH_OPTION", ""),
        "PASS_ENV" => ENV.keys.grep(Connection::PASSED_ON),
        "RETRY" => 0, # a command that ran twice is not a measurement
        "FAILED_TARGET" => "delete" }
    end
  end
end
