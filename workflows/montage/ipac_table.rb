# frozen_string_literal: true

# IPAC tables, the text format of all Montage tables: header lines begin with "|" and their bars
# set the columns, comment lines begin with "\" (irsa.ipac.caltech.edu, "IPAC table format").
module IpacTable
  module_function

  # All rows, each a hash of column name => text.
  def read(path)
    bars = nil
    names = []
    File.foreach(path, chomp: true).with_object([]) do |line, rows|
      next if line.start_with?("\\") || line.strip.empty?

      if line.start_with?("|")
        bars ||= (0...line.size).select { |at| line[at] == "|" }
        names = bars.each_cons(2).map { |from, to| line[from + 1...to].strip } if names.empty?
      else
        rows << names.zip(cells(line, bars)).to_h
      end
    end
  end

  # The text of a table: rows of [value, ...] under the given names, every column as text.
  def format(names, rows)
    widths = [names, *rows].transpose.map { |column| column.map { |cell| cell.to_s.size }.max }
    line = ->(cells, bar) { bar + cells.zip(widths).map { |c, w| c.to_s.rjust(w + 1) }.join(bar) }
    head = [names, names.map { "char" }].map { |cells| "#{line.call(cells, '|')}|\n" }
    [*head, *rows.map { |cells| "#{line.call(cells, ' ')}\n" }].join
  end

  # The text of the same table with only the rows for which the block is true.
  def select(path)
    rows = read(path).each
    File.foreach(path).select do |line|
      line.start_with?("\\", "|") || line.strip.empty? || yield(rows.next)
    end.join
  end

  # The last column may run past its bar.
  def cells(line, bars)
    starts = bars[0..-2]
    starts.zip([*starts.drop(1), line.size]).map { |from, to| line[from...to].to_s.strip }
  end
end
