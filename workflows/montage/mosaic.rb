# frozen_string_literal: true

# The tasks that exist only once it is known which tiles overlap: projection, background
# matching, co-addition.
class Mosaic
  include Rake::DSL

  # mOverlaps compares outlines, so pairs whose pixels do not meet are normal.
  APART = /\AImages don't overlap/
  NO_PLANE = %([struct stat="WARNING", msg="no overlap"]\n)

  Pair = Struct.new(:cntr1, :cntr2, :plus, :minus, :diff) do
    def difference = "differences/#{diff}"
    def plane = "planes/#{diff.ext('txt')}"
    # Told by mDiff, or by an earlier run's empty file: what other hosts write may be seen late.
    attr_writer :apart
    def apart? = @apart
  end

  def initialize
    columns = Pair.members.map(&:to_s)
    @pairs = IpacTable.read("overlaps.tbl").map { |row| Pair.new(*row.values_at(*columns)) }
    @pairs.each { |pair| pair.apart = File.empty?(pair.difference) }
    @subtiles = SUBTILES.to_h do |subtile|
      [subtile, IpacTable.read("#{subtile}.cover").map { |row| File.basename(row["fname"]) }]
    end
    @subtiles.reject! { |_, names| names.empty? } # a corner of the region without tiles
  end

  # Plain rake parks a thread in each task whose prerequisites are running, and -j counts parked
  # threads; so the last task names the wide steps in their order, which keeps all cores busy.
  # It changes nothing for Pwrake, which starts whatever is ready.
  def define
    NAMES.each { |name| define_tile(name) }
    @pairs.each { |pair| define_pair(pair) }
    define_background_model
    @subtiles.each { |subtile, names| define_subtile(subtile, names) }
    define_preview
    define_mosaic
    define_report
    steps = [projected, planes, corrected, "mosaic.fits", shrunk, "mosaic.png", "report"]
    task "mosaic" => steps.flatten
  end

  private

  def projected = NAMES.map { |name| "projected/#{name}" }
  def corrected = NAMES.map { |name| "corrected/#{name}" }
  def planes = @pairs.map(&:plane)
  def shrunk = @subtiles.keys.map { |subtile| shrunk_image(subtile) }
  def shrunk_image(subtile) = subtile.sub("tiles/", "shrunk/").ext("fits")

  def define_tile(name)
    file "projected/#{name}" => ["#{TILES}/#{name}", "region.hdr"] do |task|
      montage(task, "mProjectPP", "#{TILES}/#{name}", task.name, "region.hdr")
    end
    file "corrected/#{name}" => ["projected/#{name}", "corrections.tbl"] do |task|
      plane = corrections.fetch(name, %w[0 0 0]) # a tile that overlaps no other has no row
      montage(task, "mBackground", "projected/#{name}", task.name, *plane)
    end
  end

  def define_pair(pair)
    file pair.difference => ["projected/#{pair.plus}", "projected/#{pair.minus}"] do |task|
      told = montage(task, "mDiff", *task.prerequisites, task.name, "region.hdr", tolerate: APART)
      pair.apart = told["stat"] != "OK"
      FileUtils.touch(task.name) if pair.apart?
    end
    file pair.plane => pair.difference do |task|
      if pair.apart?
        write_whole(task.name, NO_PLANE)
      else
        montage(task, "mFitplane", "-s", task.name, pair.difference, report: task.name)
      end
    end
  end

  # One plane for every tile, such that the differences in all overlaps become smallest.
  def define_background_model
    file "projected.tbl" => projected do |task|
      image_table(task, "projected", NAMES)
    end
    file "planes.tbl" => "overlaps.tbl" do |task|
      rows = @pairs.map { |pair| [pair.cntr1, pair.cntr2, File.basename(pair.plane)] }
      write_whole(task.name, IpacTable.format(%w[cntr1 cntr2 stat], rows))
    end
    file "fits.tbl" => ["planes.tbl", *planes] do |task|
      fits = montage(task, "mConcatFit", "planes.tbl", task.name, "planes")
      next if fits.values_at("count", "failed", "missing") == [@pairs.size.to_s, "0", "0"]

      File.delete(task.name)
      COMMANDS.give_up("mConcatFit read not all planes of #{@pairs.size} pairs: #{fits}")
    end
    file "corrections.tbl" => ["projected.tbl", "fits.tbl"] do |task|
      montage(task, "mBgModel", "-a", "projected.tbl", "fits.tbl", task.name)
    end
  end

  # Plane a, b, c of each tile: the background is ax + by + c from the reference pixel.
  def corrections
    @corrections ||= begin
      names = IpacTable.read("projected.tbl").to_h { |row| row.values_at("cntr", "fname") }
      planes = IpacTable.read("corrections.tbl")
      planes.to_h { |row| [names.fetch(row["id"]), row.values_at("a", "b", "c")] }
    end
  end

  def define_subtile(subtile, names)
    # mAdd opens every image of its table, and others are still being written.
    file "#{subtile}.tbl" => ["projected.tbl", "#{subtile}.cover"] do |task|
      rows = IpacTable.select("projected.tbl") { |row| names.include?(row["fname"]) }
      write_whole(task.name, rows)
    end
    needed = names.map { |name| "corrected/#{name}" }
    file "#{subtile}.fits" => ["#{subtile}.tbl", "#{subtile}.hdr", *needed] do |task|
      montage(task, "mAdd", "-e", "-p", "corrected", "#{subtile}.tbl", "#{subtile}.hdr", task.name)
    end
    file shrunk_image(subtile) => "#{subtile}.fits" do |task|
      montage(task, "mShrink", "#{subtile}.fits", task.name, SHRINK)
    end
  end

  # The shrunk sub-tiles together, as one picture.
  def define_preview
    file "shrunk.tbl" => shrunk do |task|
      image_table(task, "shrunk", shrunk.map { |image| File.basename(image) })
    end
    file "shrunk.hdr" => "region.hdr" do |task|
      write_whole(task.name, shrink_header(File.read("region.hdr")))
    end
    file "shrunk.fits" => %w[shrunk.tbl shrunk.hdr] do |task|
      montage(task, "mAdd", "-n", "-e", "-p", "shrunk", "shrunk.tbl", "shrunk.hdr", task.name)
    end
    file "mosaic.png" => "shrunk.fits" do |task|
      stretch = %w[-2s max gaussian-log]
      montage(task, "mViewer", "-ct", 1, "-gray", "shrunk.fits", *stretch, "-out", task.name)
    end
  end

  def shrink_header(header)
    header.gsub(/^(NAXIS|CRPIX|CDELT)([12]) *= *(\S+)/) do
      keyword, axis, value = $1, $2, $3.to_f
      value = case keyword
              when "NAXIS" then (value / SHRINK).ceil
              when "CRPIX" then (value - 0.5) / SHRINK + 0.5
              when "CDELT" then format("%.12f", value * SHRINK)
              end
      "#{keyword}#{axis}  = #{value}"
    end
  end

  def define_mosaic
    file "mosaic.fits" => ["projected.tbl", "region.hdr", *corrected] do |task|
      montage(task, "mAdd", "-e", "-p", "corrected", "projected.tbl", "region.hdr", task.name)
    end
  end

  def define_report
    task "report" => "corrections.tbl" do
      Report.write(CELL, alone: NAMES - corrections.keys, tiles: NAMES.size,
                         pairs: @pairs.size, pairs_apart: @pairs.count(&:apart?),
                         grid: GRID.join("x"), subtiles: @subtiles.size, shrink: SHRINK)
    end
  end
end
