# frozen_string_literal: true

require "fileutils"
require "json"

# How one engine is started on the Rakefile: its command line and what it needs beside it.
# Whichever is taken is told by the engine's own process, in facts.json.
module Engine
  class Unusable < StandardError; end

  RAKEFILE = File.join(__dir__, "Rakefile")
  QUIET = ["--quiet", "--suppress-backtrace", "."].freeze

  module_function

  # +wanted+ is "rake", "pwrake" or nil: Pwrake then, where there is one.
  def choose(wanted, cell)
    pwrake = pwrake_program unless wanted == "rake"
    return Pwrake.new(pwrake, cell) if pwrake
    return PlainRake.new(cell) unless wanted == "pwrake"

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
      per_node = Integer(environment.fetch("BURSTLAB_CORES", "1"))
      nodes = hosts(environment["BURSTLAB_HOSTFILE"]).tally
      @cores = nodes.transform_values { |count| count * per_node }
    end

    # The engine starts in another directory.
    def paths = { "BURSTLAB_CELL_DIR" => @directory, "BURSTLAB_DATA" => @data }

    private

    # One line for each node; the nodes of one host share its name.
    def hosts(path) = path ? File.readlines(path, chomp: true).reject(&:empty?) : ["localhost"]
  end

  # Commands run side by side on this host alone.
  class PlainRake
    def initialize(cell)
      @cell = cell
      elsewhere = cell.cores.keys - here
      return if elsewhere.empty?

      raise Unusable, "rake starts commands on this host only, not on #{elsewhere.first}: set " \
                      "PWRAKE to a Pwrake checkout or program, or use one node"
    end

    def command
      program = Engine.on_path("rake") or raise Unusable, "no rake on PATH (Debian package rake)"
      jobs = @cell.cores.values.sum.to_s
      [program, *QUIET, "--multitask", "--jobs", jobs, "--rakefile", RAKEFILE]
    end

    def environment = {}

    private

    def here
      require "socket"
      mine = Socket.ip_address_list.map(&:ip_address)
      @cell.cores.keys.select { |host| host == "localhost" || (addresses(host) & mine).any? }
    end

    def addresses(host)
      Addrinfo.getaddrinfo(host, nil).map(&:ip_address)
    rescue SocketError # a name that this host does not know is not its own
      []
    end
  end

  # Commands run on all hosts, through one Ruby worker on each.
  class Pwrake
    # Set on every host for the commands; ssh passes nothing on.
    PASSED_ON = /\A(PATH|LD_LIBRARY_PATH|GFARM_CONFIG_FILE|(BURSTLAB|MONTAGE)_.*)\z/

    def initialize(program, cell)
      @program = program
      @cell = cell
    end

    def command
      FileUtils.rm_rf(log_path) # of an earlier try: Pwrake would take another name
      File.write(hosts_path, @cell.cores.map { |host, cores| "#{host} #{cores}\n" }.join)
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
        "PASS_ENV" => ENV.keys.grep(PASSED_ON),
        "RETRY" => 0, # a command that ran twice is not a measurement
        "FAILED_TARGET" => "delete" }
    end
  end
end
