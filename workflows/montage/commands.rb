# frozen_string_literal: true

require "shellwords"
require_relative "slots"

# Runs one Montage command on the engine that runs the Rakefile, times it and judges it.
#
# Every command becomes one row of operations.csv; on both engines its time is what the engine
# waited for it, as in the histograms of Sawada's figures 2 and 3.
class Commands
  class Failed < StandardError; end

  COLUMNS = %w[operation start_s elapsed_s host status task command].freeze

  def initialize(directory)
    @directory = directory
    @operations = File.open(File.join(directory, "operations.csv"), "w")
    @operations.sync = true # a run that is killed keeps what it timed
    @operations.write("#{COLUMNS.join(',')}\n")
    @slots = Slots.open
  end

  # What the command printed in its closing "[struct stat=...]" line, as a hash of texts.
  #
  # Montage may exit with 0 after an ERROR, so the exit status and stat="OK" both count. An error
  # whose message matches +tolerate+ is returned like a success. A failed command leaves neither
  # its target nor the area image beside it: they would pass for complete in the next run.
  # +report+ names the file that the command writes its struct to, where it prints nothing.
  def run(task, *argv, report: nil, tolerate: nil)
    raise @failure if @failure

    complete = false
    argv = argv.map(&:to_s)
    output, status = timed(task, argv)
    output = File.read(report) if report && File.exist?(report)
    result = parse(output)
    complete = status.zero? && result["stat"] == "OK"
    return result if complete || (tolerate && tolerate.match?(result["msg"].to_s))

    reason = result["msg"] || output.strip.lines.last || "it printed nothing"
    give_up("#{argv.join(' ')}: exit status #{status}: #{reason.strip}")
  ensure
    discard(task.name) unless complete
  end

  # Ends the run: whatever starts a command later fails for the same reason.
  def give_up(reason)
    fail_for(reason)
    raise @failure
  end

  private

  # The first reason counts, before others fail for want of the rest; the record tells it, too.
  def fail_for(reason)
    return if @failure

    @failure = Failed.new(reason)
    File.write(File.join(@directory, "failure.txt"), "#{reason}\n")
  end

  # The time in a slot, not the time until one is free.
  def timed(task, argv)
    @slots.take do |slot|
      start_s = Process.clock_gettime(Process::CLOCK_REALTIME)
      begun_s = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      output, status = slot.execute(argv)
      elapsed_s = Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun_s
      quoted = [task.name, argv.shelljoin].map { |text| %("#{text.gsub('"', '""')}") }
      times = [start_s, elapsed_s].map { |seconds| format("%.6f", seconds) }
      @operations.write("#{[argv[0], *times, slot.host, status, *quoted].join(',')}\n")
      [output, status]
    end
  rescue Connection::Lost => e
    fail_for(e.message)
    @slots.close # rake waits for what runs on the other hosts
    raise @failure
  end

  def parse(output)
    struct = output[/\[struct stat=.*\]/m].to_s
    struct.scan(/(\w+)=(?:"(.*?)"|([^,\]\s]+))/m).to_h { |key, quoted, bare| [key, quoted || bare] }
  end

  def discard(target)
    outputs = [target, target.sub(/\.fits\z/, "_area.fits")]
    File.delete(*outputs.select { |path| File.file?(path) })
  end
end
